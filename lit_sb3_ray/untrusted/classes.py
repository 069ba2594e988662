"""The classes that a downloaded model or its statistics may hold: nothing that is not listed here is ever looked up.

All that is listed are classes that keep what they are given, and the functions by which numpy and torch rebuild arrays. What
can import, evaluate, open or run anything has no place here. Which of them are called, and with what, is in `calls`.
"""

from __future__ import annotations

import importlib
from typing import Any

_SPACES = ("Box", "Dict", "Discrete", "Graph", "MultiBinary", "MultiDiscrete", "OneOf", "Sequence", "Text", "Tuple")
_NUMBERS = (
    *("bool", "bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "longdouble", "complex64", "complex128", "str_", "bytes_", "ndarray"),
)
_ACTIVATIONS = (
    *("CELU", "ELU", "GELU", "GLU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU", "LogSigmoid"),
    *("LogSoftmax", "Mish", "PReLU", "RReLU", "ReLU", "ReLU6", "SELU", "SiLU", "Sigmoid", "Softmax", "Softmin", "Softplus"),
    *("Softshrink", "Softsign", "Tanh", "Tanhshrink", "Threshold"),
)
_TENSOR_TYPES = (
    *("bfloat16", "bool", "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8"),
    *("Size", "device"),
)

ALLOWED: dict[str, tuple[str, ...]] = {
    "builtins": (
        *("bool", "bytes", "complex", "dict", "float", "frozenset", "int", "list", "range", "set", "slice", "str", "tuple"),
    ),
    "collections": ("OrderedDict", "defaultdict", "deque"),
    # numpy: arrays, numbers, generators.
    "numpy": _NUMBERS,
    "numpy._core.multiarray": ("_reconstruct",),
    "numpy._core.numeric": ("_frombuffer",),
    "numpy.random._pickle": ("__bit_generator_ctor", "__generator_ctor", "__randomstate_ctor"),
    "numpy.random._generator": ("Generator",),
    "numpy.random._mt19937": ("MT19937",),
    "numpy.random._pcg64": ("PCG64", "PCG64DXSM"),
    "numpy.random._philox": ("Philox",),
    "numpy.random._sfc64": ("SFC64",),
    "numpy.random.bit_generator": ("SeedSequence", "__pyx_unpickle_SeedSequence"),
    # torch: what networks are described with, and tensors.
    "torch": _TENSOR_TYPES,
    "torch._utils": ("_rebuild_parameter", "_rebuild_tensor", "_rebuild_tensor_v2"),
    "torch.nn.modules.activation": _ACTIVATIONS,
    "torch.nn.modules.linear": ("Identity", "Linear"),
    "torch.optim.adadelta": ("Adadelta",),
    "torch.optim.adagrad": ("Adagrad",),
    "torch.optim.adam": ("Adam",),
    "torch.optim.adamax": ("Adamax",),
    "torch.optim.adamw": ("AdamW",),
    "torch.optim.nadam": ("NAdam",),
    "torch.optim.radam": ("RAdam",),
    "torch.optim.rmsprop": ("RMSprop",),
    "torch.optim.sgd": ("SGD",),
    # gymnasium: spaces, each in a module of its own.
    "gymnasium.spaces.box": ("Box",),
    "gymnasium.spaces.dict": ("Dict",),
    "gymnasium.spaces.discrete": ("Discrete",),
    "gymnasium.spaces.graph": ("Graph",),
    "gymnasium.spaces.multi_binary": ("MultiBinary",),
    "gymnasium.spaces.multi_discrete": ("MultiDiscrete",),
    "gymnasium.spaces.oneof": ("OneOf",),
    "gymnasium.spaces.sequence": ("Sequence",),
    "gymnasium.spaces.text": ("Text",),
    "gymnasium.spaces.tuple": ("Tuple",),
    "gymnasium.spaces": _SPACES,
    # Stable-Baselines3.
    "stable_baselines3.common.buffers": (
        *("DictReplayBuffer", "DictRolloutBuffer", "NStepReplayBuffer", "ReplayBuffer", "RolloutBuffer"),
    ),
    "stable_baselines3.common.noise": ("NormalActionNoise", "OrnsteinUhlenbeckActionNoise", "VectorizedActionNoise"),
    "stable_baselines3.common.policies": ("ActorCriticCnnPolicy", "ActorCriticPolicy", "MultiInputActorCriticPolicy"),
    "stable_baselines3.common.running_mean_std": ("RunningMeanStd",),
    "stable_baselines3.common.sb2_compat.rmsprop_tf_like": ("RMSpropTFLike",),
    "stable_baselines3.common.torch_layers": ("CombinedExtractor", "FlattenExtractor", "MlpExtractor", "NatureCNN"),
    "stable_baselines3.common.type_aliases": ("RolloutReturn", "TrainFreq", "TrainFrequencyUnit"),
    "stable_baselines3.common.utils": ("ConstantSchedule", "FloatSchedule", "LinearSchedule"),
    "stable_baselines3.common.vec_env.vec_normalize": ("VecNormalize",),
    "stable_baselines3.dqn.policies": ("CnnPolicy", "DQNPolicy", "MultiInputPolicy"),
    "stable_baselines3.her.goal_selection_strategy": ("GoalSelectionStrategy",),
    "stable_baselines3.her.her_replay_buffer": ("HerReplayBuffer",),
    "stable_baselines3.sac.policies": ("CnnPolicy", "MultiInputPolicy", "SACPolicy"),
    "stable_baselines3.td3.policies": ("CnnPolicy", "MultiInputPolicy", "TD3Policy"),
    # sb3-contrib.
    "sb3_contrib.ars.policies": ("ARSLinearPolicy", "ARSPolicy"),
    "sb3_contrib.common.maskable.buffers": ("MaskableDictRolloutBuffer", "MaskableRolloutBuffer"),
    "sb3_contrib.common.maskable.policies": (
        *("MaskableActorCriticCnnPolicy", "MaskableActorCriticPolicy", "MaskableMultiInputActorCriticPolicy"),
    ),
    "sb3_contrib.common.recurrent.buffers": ("RecurrentDictRolloutBuffer", "RecurrentRolloutBuffer"),
    "sb3_contrib.common.recurrent.policies": (
        *("RecurrentActorCriticCnnPolicy", "RecurrentActorCriticPolicy", "RecurrentMultiInputActorCriticPolicy"),
    ),
    "sb3_contrib.common.recurrent.type_aliases": ("RNNStates",),
    "sb3_contrib.crossq.policies": ("CrossQPolicy",),
    "sb3_contrib.qrdqn.policies": ("CnnPolicy", "MultiInputPolicy", "QRDQNPolicy"),
    "sb3_contrib.tqc.policies": ("CnnPolicy", "MultiInputPolicy", "TQCPolicy"),
    # This package.
    "lit_sb3_ray.config.schedules": ("CosineSchedule", "LinearSchedule"),
}
"""Module -> the names in it that may be looked up."""

_MOVED = {"gym.spaces": "gymnasium.spaces", "numpy.core": "numpy._core"}


def canonical(module: str) -> str:
    """Gives a module's name of today: models of older versions name OpenAI Gym's spaces, and numpy's core as it was."""
    for old, new in _MOVED.items():
        if module == old or module.startswith(f"{old}."):
            return new + module.removeprefix(old)
    return module


def is_allowed(module: str, name: str) -> bool:
    """Tells whether a name is listed.

    Args:
        module: The module's name, as `canonical` gives it.
        name: The name in it; a path of names never is.
    """
    return name in ALLOWED.get(module, ())


def look_up(module: str, name: str) -> Any:
    """Imports a listed name's module and takes it from there.

    Args:
        module: The module's name, as `canonical` gives it.
        name: The name in it.

    Raises:
        LookupError: It is not listed, or the installed version of its package has none such.
    """
    if not is_allowed(module, name):
        raise LookupError(f"{module}.{name} is not listed")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise LookupError(f"{module}.{name} is not in the installed version of {module.partition('.')[0]}") from error
