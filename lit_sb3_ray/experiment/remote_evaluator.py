"""The learner's side of the evaluation actor."""

from __future__ import annotations

import logging
import os
import sys
from collections import deque
from concurrent import futures
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayActorError, RayError
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from lit_sb3_ray.experiment.evaluation_actor import EVALUATION_CPUS, EvaluationActor, evaluation_request
from lit_sb3_ray.experiment.evaluator import EvaluatorRecipe
from lit_sb3_ray.lit.evaluation import Evaluation, own_random_stream
from lit_sb3_ray.scale.connection import connect
from lit_sb3_ray.scale.resources import cpu_supply, grant, numbers
from lit_sb3_ray.vec.failures import ActorError, EnvFailure
from lit_sb3_ray.vec.process import ActorProcess
from lit_sb3_ray.vec.sending import pickle_builder

logger = logging.getLogger(__name__)

# For Ray to place and start the actor, in seconds.
_PLACE_PATIENCE_S = 60.0
# How often the actor may die over one and the same thing, less once.
_REPEATS = 1
_REMEDY = "end what holds them, or leave --async-eval out"


@dataclass
class Asked:
    """Something that the actor was asked for.

    Attributes:
        step: Env steps of the copy to be evaluated; None for the construction of the environments.
        files: The copy's model, and its statistics if it has any.
        answer: What the actor will answer.
    """

    step: int | None
    files: tuple[Path, Path | None] | None
    answer: Any = None


class RemoteEvaluator:
    """Evaluates copies of a model in an actor, one after another, in the order in which they are given.

    An actor that dies is replaced once for the evaluation at which it died, which is then done again. Nothing here draws from
    the learner's random streams.
    """

    def __init__(self, recipe: EvaluatorRecipe) -> None:
        """Starts the actor, and waits until it has its CPU, not until its environments are built.

        Args:
            recipe: What to build in it.

        Raises:
            ConfigError: The recipe cannot be sent, or Ray can never have the CPU.
            ActorError: Ray has not started the actor in time.
        """
        self._builder = pickle_builder(recipe, 0)  # type: ignore[arg-type]
        self._deaths = 0
        self._process: ActorProcess | None = None
        self._asked: deque[Asked] = deque([Asked(None, None)])
        self._start()

    @property
    def steps(self) -> list[int]:
        """Env steps of the copies that are not evaluated yet, or whose result was not taken, oldest first."""
        return [asked.step for asked in self._asked if asked.step is not None]

    @property
    def pid(self) -> int:
        """The actor's process."""
        assert self._process is not None
        return self._process.home.pid

    def ask(self, step: int, model: Path, statistics: Path | None) -> None:
        """Asks for the evaluation of a copy.

        Args:
            step: Env steps at which it was taken.
            model: Its model; it has to stay there until the result is taken.
            statistics: Its statistics, if it has any.
        """
        asked = Asked(step, (model, statistics))
        self._asked.append(asked)
        self._send(asked)

    def forget(self) -> None:
        """Forgets the copies that were given; what their evaluations have come to is not taken any more."""
        self._asked = deque(asked for asked in self._asked if asked.step is None)

    def take(self) -> tuple[int, Evaluation] | None:
        """Takes the oldest result, if it is there: a call that costs next to nothing, and does not ask Ray.

        Returns:
            The copy's env steps and its evaluation.

        Raises:
            Exception: What an environment has raised, with its own traceback as a note.
            ActorError: The actor has died over the same evaluation again.
        """
        while self._asked and self._asked[0].answer.done():
            asked = self._asked[0]
            try:
                value: Evaluation | EnvFailure | None = asked.answer.result()
            except RayActorError as error:
                self._replace(asked, " ".join(str(error).split()))
                return None
            if isinstance(value, EnvFailure):
                raise value.original()
            self._asked.popleft()
            if asked.step is not None and value is not None:
                self._deaths = 0
                return asked.step, value
        return None

    def wait(self, seconds: float) -> None:
        """Waits for an answer.

        Args:
            seconds: How long at most.
        """
        if self._asked:
            futures.wait([self._asked[0].answer], timeout=seconds)

    def close(self) -> None:
        """Ends the actor at once, whatever it does; a second call does nothing."""
        self._asked.clear()
        process, self._process = self._process, None
        if process is not None:
            process.kill()

    def _start(self) -> None:
        connect()
        supply = cpu_supply()
        grant([evaluation_request()], supply, _REMEDY)
        options: dict[str, Any] = {"num_cpus": EVALUATION_CPUS, "num_gpus": 0, "max_restarts": 0, "max_task_retries": 0}
        if supply.group is not None:
            options["scheduling_strategy"] = PlacementGroupSchedulingStrategy(supply.group)
        search_path = [os.path.abspath(folder) for folder in sys.path]
        niceness = os.getpriority(os.PRIO_PROCESS, 0)
        actor: Any = ray.remote(EvaluationActor).options(**options).remote(search_path, niceness)
        try:
            home = ray.get(actor.locate.remote(), timeout=_PLACE_PATIENCE_S)
        except GetTimeoutError:
            ray.kill(actor)
            raise ActorError(
                f"the evaluation actor was not started within {_PLACE_PATIENCE_S:g} s: "
                f"{numbers([evaluation_request()], cpu_supply())}: {_REMEDY}"
            ) from None
        except RayError as error:
            raise ActorError(f"the evaluation actor cannot be started: {' '.join(str(error).split())}") from error
        except BaseException:  # Ctrl-C as well: whatever it was goes on, and leaves no actor behind.
            ray.kill(actor)
            raise
        here = home.node == ray.get_runtime_context().get_node_id()
        self._process = ActorProcess(actor, home, here=here)
        logger.info("evaluations are played in process %d on node %s", home.pid, home.node[:12])
        for asked in self._asked:
            self._send(asked)

    def _send(self, asked: Asked) -> None:
        assert self._process is not None
        actor = self._process.handle
        if asked.files is None:
            asked.answer = actor.furnish.remote(self._builder).future()
            return
        model, statistics = asked.files
        known = None if statistics is None else statistics.read_bytes()
        asked.answer = actor.evaluate.remote(asked.step, model.read_bytes(), known).future()

    def _replace(self, asked: Asked, cause: str) -> None:
        """Starts another actor for everything that is not answered, since the one there was has died."""
        what = "building its environments" if asked.step is None else f"the evaluation at {asked.step} env steps"
        self._deaths += 1
        if self._process is not None:
            self._process.kill()
            self._process = None
        if self._deaths > _REPEATS:
            raise ActorError(f"the evaluation actor has died {self._deaths} times in {what}: {cause}")
        logger.warning("the evaluation actor has died in %s, which is done again in another: %s", what, cause)
        if self._asked[0].step is not None:
            self._asked.appendleft(Asked(None, None))
        with own_random_stream(None):
            self._start()
