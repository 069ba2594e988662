"""What several learners have in common while an iteration is under way: what they have seen, and what they learn of it."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from lit_sb3_ray.errors import LearnerError
from lit_sb3_ray.lit.agreement import AgreedLimit, Episode, Tally
from lit_sb3_ray.lit.exchange import Exchange
from lit_sb3_ray.lit.finite import CHECK_EVERY
from lit_sb3_ray.lit.gradients import GradientAverage
from lit_sb3_ray.lit.merging import Merger
from lit_sb3_ray.lit.state import normalize_statistics

if TYPE_CHECKING:
    from lit_sb3_ray.lit.iteration import Session

APART = (
    "the learners' weights have come apart: something changes the model in one of them alone. A callback that does so has to "
    "stand among the hyperparameters, where each learner has it"
)


class JointIteration:
    """One learner's part in an iteration of all.

    Advantages are normalised by each learner over its own part of a minibatch.
    """

    def __init__(
        self, session: Session, exchange: Exchange, tally: Tally, merger: Merger, record: Callable[[int, dict[str, Any]], None]
    ) -> None:
        """Lets a session agree and learn with those of the other learners.

        Args:
            session: The learner's own, begun.
            exchange: The way to the other learners.
            tally: Keeps the episodes of this one.
            merger: Knows the statistics that all had before their envs were reset.
            record: Called in the first learner for each episode of the others, with the index of its env among all.
        """
        self._algorithm: Any = session.algorithm
        self._exchange, self._tally, self._merger, self._record = exchange, tally, merger, record
        self._gradients = GradientAverage(session.algorithm, exchange)
        self._around = session.autocast
        self._rollouts = 0
        # The reset of the envs is what they have seen until now.
        self._share([])
        session.learners = exchange.size
        session.autocast = self.updating

    def agree(self, going: bool) -> bool:
        """Finds out, after a rollout, whether all learners go on, and shares what they have seen in it.

        Args:
            going: Whether this one does.

        Raises:
            LearnerError: Their weights are no longer the same.
        """
        self._rollouts += 1
        episodes = [] if self._exchange.rank == 0 else self._tally.take_episodes()
        # Short iterations, which off-policy algorithms have, are not worth a look each.
        looks = not hasattr(self._algorithm, "replay_buffer") or self._rollouts % CHECK_EVERY == 0
        weights = self._gradients.checksum() if looks else 0.0
        stopping, ended, all_weights = self._share([float(not going), float(len(episodes)), weights])
        if all_weights != self._exchange.size * weights:
            raise LearnerError(APART)
        if ended:
            self._hand_on(episodes)
        return not stopping

    @contextmanager
    def updating(self) -> Iterator[None]:
        """What an update runs in: gradients are averaged, and a limit to the change of the policy is everyone's."""
        algorithm = self._algorithm
        limit = getattr(algorithm, "target_kl", None)
        if limit is not None:
            algorithm.target_kl = AgreedLimit(limit, self._exchange)
        try:
            with self._around(), self._gradients.averaging():
                yield
        finally:
            if limit is not None:
                algorithm.target_kl = limit

    def end(self) -> None:
        """Takes the hooks away."""
        self._gradients.remove()

    def _share(self, numbers: list[float]) -> list[float]:
        """Adds numbers up over all learners, and makes running statistics those of all; both at once."""
        statistics = normalize_statistics(self._algorithm)
        sums = torch.from_numpy(np.concatenate([numbers, self._merger.told(statistics)]))
        self._exchange.sum(sums)
        self._merger.merge(statistics, sums.numpy()[len(numbers) :])
        return [float(value) for value in sums[: len(numbers)]]

    def _hand_on(self, episodes: list[Episode]) -> None:
        """Hands the episodes that have ended in the other learners to the first."""
        for rank, content in enumerate(self._exchange.gather(pickle.dumps(episodes))):
            for index, episode, success in pickle.loads(content) if rank else ():
                self._algorithm.ep_info_buffer.append(episode)
                if success is not None:
                    self._algorithm.ep_success_buffer.append(success)
                self._record(rank * self._algorithm.env.num_envs + index, episode)
