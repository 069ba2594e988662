"""Several learners for one run: this process is the first, Ray actors are the others.

The first one has the run folder, the evaluations, the signals and the model that `learn` was given, as in a run of one. Ray
Train would make all learners workers of its own: in threads, where no signal arrives and no iteration can be cut, and always
in a placement group of its own, which a trial has already.
"""

from __future__ import annotations

import logging
import os
import shlex
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import cloudpickle  # type: ignore[import-untyped]
import torch

from lit_sb3_ray.envs.monitor import find_recorder
from lit_sb3_ray.errors import ConfigError, LearnerError
from lit_sb3_ray.experiment.devices import divide_gpus, threads_of_each, visible_gpus
from lit_sb3_ray.experiment.learner import LearnerActor, Seat
from lit_sb3_ray.experiment.learner_recipe import learner_recipe, legacy_of
from lit_sb3_ray.lit.data_parallel import DataParallel
from lit_sb3_ray.lit.exchange import TICK_S, Exchange
from lit_sb3_ray.lit.meeting import Meeting, open_meeting

if TYPE_CHECKING:
    from stable_baselines3.common.base_class import BaseAlgorithm

    from lit_sb3_ray.experiment.checkpoints import CheckpointSaver
    from lit_sb3_ray.experiment.learner_watch import LearnerWatch
    from lit_sb3_ray.experiment.manager import ExperimentManager
    from lit_sb3_ray.lit.module import RLModule
    from lit_sb3_ray.vec.process import ActorProcess

logger = logging.getLogger(__name__)

LOOPBACK = "127.0.0.1"
# For Ray to place and start the learners, in seconds; and where nodes may have to be started first.
_PLACE_PATIENCE_S = 60.0
_GROW_PATIENCE_S = 1200.0
# For learners that have been dismissed to close their envs.
_LEAVE_PATIENCE_S = 5.0


class _StoppedEarlyError(Exception):
    """A stop was asked for before there was anything to stop."""


@contextmanager
def together(manager: ExperimentManager, module: RLModule, saver: CheckpointSaver) -> Iterator[None]:
    """Lets other learners train with a module, as many as the experiment has; does nothing for an experiment of one.

    Args:
        manager: The experiment, set up.
        module: The module of its first learner.
        saver: Takes the checkpoints, which then hold what is the other learners' own.

    Raises:
        ConfigError: They cannot be started here.
        LearnerError: One is lost.
    """
    done = manager.checkpoint is not None and int(manager.checkpoint.name) >= manager.hyperparams.n_timesteps
    if manager.devices == 1 or done:
        yield
        return
    others = _Others(manager, module)
    collected = manager.run.checkpoints / ".learners"
    try:
        parallel = others.meet()
        if parallel is not None:
            module.parallel = parallel
            saver.others = lambda: parallel.collect(collected)
            _record_episodes(module.algorithm, parallel)
        yield
        if parallel is not None:
            _dismiss(parallel)
            others.see_off()
    except LearnerError as error:
        raise others.cause(error) from error
    finally:
        if module.parallel is not None:
            module.parallel.leave()
            module.parallel = None
        others.close()
        shutil.rmtree(collected, ignore_errors=True)


class _Others:
    """The other learners, as the first one sees them."""

    def __init__(self, manager: ExperimentManager, module: RLModule) -> None:
        """Looks where they may be; starts nothing.

        Raises:
            ConfigError: This process is in a placement group.
        """
        import ray
        from ray.util.placement_group import get_current_placement_group

        from lit_sb3_ray.scale.connection import connect

        connect(manager.ray_settings)
        if get_current_placement_group() is not None:
            raise ConfigError(
                f"--devices {manager.devices} inside a trial: its placement group has room for one learner; train outside of "
                "it, or with one device"
            )
        self._manager, self._model, self._guard = manager, module.algorithm, module.guard
        self._on_gpus = torch.device(self._model.device).type == "cuda"
        self._node = ray.get_runtime_context().get_node_id()
        self._actors: list[Any] = []
        self._processes: list[ActorProcess] = []
        self._watch: LearnerWatch | None = None

    def meet(self) -> DataParallel | None:
        """Starts the learners, lets them build their models, and brings all together.

        Returns:
            The first learner's part; None when a stop was asked for in the meantime.

        Raises:
            LearnerError: Ray does not start them, or one dies.
        """
        try:
            self._start()
            return self._assemble(self._locate())
        except _StoppedEarlyError:
            return None

    def _assemble(self, seats: list[Seat]) -> DataParallel:
        from lit_sb3_ray.experiment.learner_watch import LearnerWatch

        size, is_one_node = self._manager.devices, all(seat.home.node == self._node for seat in seats)
        host = LOOPBACK if is_one_node else _own_address()
        store, port = open_meeting(host)
        recipe = cloudpickle.dumps(learner_recipe(self._manager, self._model, on_gpus=self._on_gpus))
        gpus: list[Any] = divide_gpus(seats, self._node, visible_gpus()) if self._on_gpus else [None] * len(seats)
        calls = []
        for rank, (actor, seat, gpu) in enumerate(zip(self._actors, seats, gpus, strict=True), 1):
            meeting = Meeting(rank, size, host, port, LOOPBACK if is_one_node else seat.host, self._on_gpus)
            calls.append(actor.learn.remote(recipe, meeting, gpu, legacy_of(rank, self._manager.checkpoint, self._model)))
            logger.info("learner %d: process %d on node %s", rank, seat.home.pid, seat.home.node[:12])
        self._watch = LearnerWatch(calls, seats)
        exchange = Exchange(Meeting(0, size, host, port, host, self._on_gpus), store, self._look_around)
        parallel = DataParallel(exchange, self._guard)
        parallel.check, self._watch.at_loss = self._watch.check, exchange.break_off
        return parallel

    def _look_around(self) -> None:
        if self._watch is not None:
            self._watch.check()
        if self._guard.requested:
            raise _StoppedEarlyError

    def see_off(self) -> None:
        """Waits for learners that have been dismissed to close their envs."""
        if self._watch is not None:
            self._watch.wait_for_all(_LEAVE_PATIENCE_S)

    def cause(self, error: LearnerError) -> Exception:
        """Finds out why a learner is lost, and says how the run can go on."""
        found: Exception = error if self._watch is None else self._watch.cause(error)
        run = self._manager.run
        if isinstance(found, LearnerError) and any(run.checkpoints.glob("[0-9]*")):
            return LearnerError(f"{found}. Go on with: lit-sb3-ray train --resume {shlex.quote(str(run.path))}")
        return found

    def close(self) -> None:
        """Ends the actors, whatever they do, and what their envs have started."""
        import ray
        from ray.exceptions import RayError

        if self._watch is not None:
            self._watch.close()
        for process in self._processes:
            process.kill()
        for actor in self._actors[len(self._processes) :]:
            with suppress(RayError):
                ray.kill(actor)
        self._actors, self._processes = [], []

    def _start(self) -> None:
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        from lit_sb3_ray.scale.placement import choose_nodes
        from lit_sb3_ray.scale.resources import cpu_supply

        manager = self._manager
        threads, others = threads_of_each(manager), manager.devices - 1
        nodes = choose_nodes(cpu_supply(), others, threads, self._node, manager.placement)
        search_path = [os.path.abspath(folder) for folder in sys.path]
        niceness = os.getpriority(os.PRIO_PROCESS, 0)
        options: dict[str, Any] = {"num_cpus": threads, "num_gpus": int(self._on_gpus), "max_restarts": 0}
        for node in nodes:
            if not self._on_gpus:
                options["scheduling_strategy"] = NodeAffinitySchedulingStrategy(node, soft=True, _spill_on_unavailable=True)
            self._actors.append(ray.remote(LearnerActor).options(**options).remote(search_path, niceness, threads))

    def _locate(self) -> list[Seat]:
        """Waits until each of the learners has its processor."""
        import ray
        from ray.exceptions import RayError

        from lit_sb3_ray.scale.autoscaling import may_grow
        from lit_sb3_ray.vec.process import ActorProcess

        patience = _GROW_PATIENCE_S if may_grow() else _PLACE_PATIENCE_S
        deadline = time.monotonic() + patience
        calls = [actor.locate.remote() for actor in self._actors]
        while ray.wait(calls, num_returns=len(calls), timeout=TICK_S)[1]:
            self._look_around()
            if time.monotonic() > deadline:
                what = f"{len(calls)} learners" + (" with a GPU each" if self._on_gpus else "")
                raise LearnerError(f"Ray has not started {what} within {patience:g} s: end what holds its processors")
        try:
            seats: list[Seat] = ray.get(calls)
        except RayError as error:
            raise LearnerError(f"a learner cannot be started: {' '.join(str(error).split())}") from error
        for actor, seat in zip(self._actors, seats, strict=True):
            self._processes.append(ActorProcess(actor, seat.home, here=seat.home.node == self._node))
        return seats


def _dismiss(parallel: DataParallel) -> None:
    """Ends the other learners' work; that one is lost now is no more than told, since all is done and saved."""
    try:
        parallel.dismiss()
    except LearnerError as error:
        logger.warning("at the end: %s", error)


def _record_episodes(model: BaseAlgorithm, parallel: DataParallel) -> None:
    env = model.get_env()
    recorder = None if env is None else find_recorder(env)
    if recorder is not None:
        parallel.record = recorder.record


def _own_address() -> str:
    import ray

    address: str = ray.util.get_node_ip_address()  # type: ignore[no-untyped-call]
    return address
