"""One of several learners of a run, other than the first: a Ray actor that trains a share of the envs, and writes nothing.

Nothing heavy is imported at the top: the actor first settles what libraries read when they are loaded.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import sys
import tempfile
import warnings
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lit_sb3_ray.vec.actor import Home
from lit_sb3_ray.vec.guard import MARK, start_guard

if TYPE_CHECKING:
    from stable_baselines3.common.base_class import BaseAlgorithm
    from stable_baselines3.common.callbacks import BaseCallback

    from lit_sb3_ray.experiment.learner_recipe import LearnerRecipe, Legacy
    from lit_sb3_ray.lit.meeting import Meeting

GPUS = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True)
class Seat:
    """Where a learner is.

    Attributes:
        home: Its node and process, and the process that ends what its envs have started.
        host: Its node's address.
        gpus: The GPUs that Ray has given it, by their ids on the node.
    """

    home: Home
    host: str
    gpus: tuple[str, ...]


class LearnerActor:
    """The process of a learner; its work is one call."""

    def __init__(self, search_path: list[str], niceness: int, num_threads: int) -> None:
        """Makes this process like the first learner's.

        Args:
            search_path: Where that one looks for modules; Ray hands on only a part of it.
            niceness: That one's. Ray lets its workers stand back, and all learners would wait for this one.
            num_threads: Threads of numerical libraries.
        """
        sys.path.extend(folder for folder in search_path if folder not in sys.path)
        with contextlib.suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, 0, niceness)
        os.environ["OMP_NUM_THREADS"] = str(num_threads)
        # Ctrl-C in a terminal is the first learner's to deal with; what envs have started here ends with this process.
        if os.getpgrp() != os.getpid():
            os.setpgid(0, 0)
        os.environ[MARK] = secrets.token_hex(16)
        self._guard = start_guard(os.environ[MARK])

    def locate(self) -> Seat:
        """Tells where the learner is."""
        import ray

        context = ray.get_runtime_context()
        gpus = tuple(map(str, context.get_accelerator_ids().get("GPU", [])))
        host: str = ray.util.get_node_ip_address()  # type: ignore[no-untyped-call]
        return Seat(Home(context.get_node_id(), os.getpid(), self._guard), host, gpus)

    def learn(self, recipe: bytes, meeting: Meeting, gpu: str | None, legacy: Legacy | None) -> None:
        """Trains with the other learners until the first one has no more to do.

        Args:
            recipe: A `LearnerRecipe`, pickled.
            meeting: Where the learners meet, and who this one is.
            gpu: Id of its GPU on its node; None for none.
            legacy: What the checkpoint to go on from holds of it; None for a new run.
        """
        os.environ[GPUS] = gpu or ""
        import pickle

        _learn(pickle.loads(recipe), meeting, legacy)


def _learn(recipe: LearnerRecipe, meeting: Meeting, legacy: Legacy | None) -> None:
    import torch
    from stable_baselines3.common.logger import Logger

    from lit_sb3_ray.lit import RLModule, RLTrainer
    from lit_sb3_ray.lit.data_parallel import DataParallel
    from lit_sb3_ray.lit.exchange import Exchange

    torch.set_num_threads(recipe.num_threads)
    with warnings.catch_warnings():
        # The first learner, made alike, has told of them.
        warnings.simplefilter("ignore", UserWarning)
        model = _model(recipe, meeting.rank)
    env = model.get_env()
    assert env is not None, "a model is made with its envs"
    try:
        model.set_logger(Logger(None, []))
        module = RLModule(model)
        exchange = Exchange(meeting)
        with tempfile.TemporaryDirectory(prefix="learner") as scratch:
            state = None if legacy is None else legacy.state
            options: dict[str, Any] = {"resumed": state, "buffer_limit": recipe.buffer_limit, "scratch": Path(scratch)}
            parallel = DataParallel(exchange, module.guard, **options)
            module.parallel = parallel
            exchange.watch(meeting, parallel.call_off)
            if legacy is not None:
                _load_buffer(model, legacy)
            trainer = RLTrainer(rl_callback=_callbacks(recipe), reset_num_timesteps=not recipe.is_resumed, **recipe.trainer)
            trainer.fit(module)
            assert module.session is not None, "it has been trained"
            parallel.wait_for_dismissal(module.session)
    finally:
        env.close()


def _model(recipe: LearnerRecipe, rank: int) -> BaseAlgorithm:
    """Makes the learner's model; it gets the first one's weights later, but its exploration is its own."""
    import gymnasium as gym
    import numpy as np

    from lit_sb3_ray.envs.vector import build_vec_env
    from lit_sb3_ray.experiment.models import make_model

    gym.registry.setdefault(recipe.registered.id, recipe.registered)
    resolved, stepping = recipe.hyperparams, recipe.stepping
    seed = recipe.env_seed + rank * resolved.n_envs
    env = build_vec_env(
        recipe.spec,
        resolved.n_envs,
        seed=seed,
        vec_env_cls=stepping.vec_env_cls,
        vec_env_kwargs=stepping.kwargs,
        **recipe.stack,
    )
    own = int(np.random.SeedSequence([recipe.seed, 0x1EA2, rank]).generate_state(1)[0] // 2)
    options: dict[str, Any] = {"seed": own, "verbose": 0, "device": recipe.device}
    model: BaseAlgorithm
    if recipe.warm is None:
        model = make_model(resolved, env, options, recipe.num_threads, recipe.spec.env_id)
    else:
        model = resolved.algo_class.load(BytesIO(recipe.warm), env=env, tensorboard_log=None, **options)
    # The constructor has seeded the envs with its own seed.
    env.seed(seed)
    return model


def _callbacks(recipe: LearnerRecipe) -> list[BaseCallback]:
    """The callbacks of the hyperparameters, which may act on the envs or the model; not those that only tell or write."""
    from stable_baselines3.common.callbacks import BaseCallback

    made = [item if isinstance(item, BaseCallback) else item[0](**item[1]) for item in recipe.hyperparams.callbacks]
    return [callback for callback in made if not is_only_telling(callback)]


def is_only_telling(callback: BaseCallback) -> bool:
    """Whether a callback writes or shows something, or looks at evaluations, which is for the first learner alone."""
    from stable_baselines3.common import callbacks

    kinds = (
        callbacks.CheckpointCallback,
        callbacks.EvalCallback,
        callbacks.LogEveryNTimesteps,
        callbacks.ProgressBarCallback,
        callbacks.StopTrainingOnNoModelImprovement,
        callbacks.StopTrainingOnRewardThreshold,
    )
    return isinstance(callback, kinds) or type(callback).__module__.startswith("lit_sb3_ray.")


def _load_buffer(model: Any, legacy: Legacy) -> None:
    from lit_sb3_ray.errors import LearnerError
    from lit_sb3_ray.lit.replay import load_buffer

    if legacy.buffer is None or getattr(model, "replay_buffer", None) is None:
        return
    if not legacy.buffer.exists():
        raise LearnerError(f"{legacy.buffer} is not seen on the learner's node: runs on several nodes need a shared folder")
    load_buffer(model.replay_buffer, legacy.buffer)
