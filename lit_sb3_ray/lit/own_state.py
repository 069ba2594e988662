"""The state of one of several learners: what all have alike, handed out by the first, and what is each one's own."""

from __future__ import annotations

import io
import pickle
from typing import TYPE_CHECKING, Any

import cloudpickle  # type: ignore[import-untyped]
import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.save_util import recursive_getattr, recursive_setattr

from lit_sb3_ray.lit.state import (
    PLACEMENT,
    callback_states,
    normalize_statistics,
    own_attributes,
    rng_states,
    set_callback_states,
    set_normalize_statistics,
    set_rng_states,
)

if TYPE_CHECKING:
    from lit_sb3_ray.lit.iteration import Session

# Learners explore each in its own way.
EXPLORATION = ("action_noise", "action_space")
_SEPARATE = frozenset({*PLACEMENT, "seed"})


def state_file(rank: int | str) -> str:
    """The name of a learner's own state in a checkpoint; of all learners' for a rank of `*`."""
    return f"learner_{rank}.pkl"


def buffer_file(rank: int) -> str:
    """The name of a learner's replay buffer in a checkpoint."""
    return f"replay_buffer_{rank}.pkl"


def own_state(session: Session) -> bytes:
    """What a learner other than the first needs of its own to go on: random generators, exploration, callbacks."""
    attributes = vars(session.algorithm)
    state = {
        "attributes": {name: attributes[name] for name in EXPLORATION if name in attributes},
        "callbacks": callback_states(session.callback),
        "rng": rng_states(),
    }
    content: bytes = cloudpickle.dumps(state)
    return content


def set_own_state(session: Session, content: bytes) -> None:
    """Puts back what `own_state` gave; the last thing before the first step."""
    state = pickle.loads(content)
    session.algorithm.__dict__.update(state["attributes"])
    set_callback_states(session.callback, state["callbacks"])
    set_rng_states(state["rng"])


def common_state(algorithm: BaseAlgorithm) -> bytes:
    """What all learners have alike: weights, optimizers, counters, statistics."""
    variables = algorithm._get_torch_save_params()[1]
    counters = {k: v for k, v in own_attributes(algorithm).items() if k not in _SEPARATE and isinstance(v, bool | int | float)}
    content = {
        "parameters": algorithm.get_parameters(),
        "variables": {name: recursive_getattr(algorithm, name).detach() for name in variables},
        "statistics": normalize_statistics(algorithm),
        "counters": counters,
    }
    with io.BytesIO() as file:
        torch.save(content, file)
        return file.getvalue()


def set_common_state(algorithm: BaseAlgorithm, content: bytes) -> None:
    """Puts what `common_state` gave into an algorithm made alike."""
    with io.BytesIO(content) as file:
        # Nobody but the run's own first learner has written it.
        state: dict[str, Any] = torch.load(file, map_location=algorithm.device, weights_only=False)
    algorithm.set_parameters(state["parameters"], exact_match=True, device=algorithm.device)
    for name, value in state["variables"].items():
        recursive_setattr(algorithm, f"{name}.data", value)
    set_normalize_statistics(algorithm, state["statistics"])
    algorithm.__dict__.update(state["counters"])
