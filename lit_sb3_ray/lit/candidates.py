"""ARS in several environments: each plays its share of the candidates, at the same time where they are in several processes.

sb3-contrib has this as `ARS.learn(async_eval=AsyncEval(...))`, one process a worker. Here the workers are the training envs,
wherever they live; the results are AsyncEval's, bit for bit, if its worker `i` is seeded as env `i` is.
"""

from __future__ import annotations

import logging
from typing import Any

import cloudpickle  # type: ignore[import-untyped]
import torch
from stable_baselines3.common.base_class import BaseAlgorithm

from lit_sb3_ray.envs.candidates import CandidateEnv, Jobs, Played
from lit_sb3_ray.envs.monitor import find_recorder
from lit_sb3_ray.errors import ConfigError

logger = logging.getLogger(__name__)


class CandidateWorkers:
    """Stands in for sb3-contrib's AsyncEval: candidate `i` plays in env `i % n_envs`.

    Attributes:
        remotes: The workers' numbers; ARS counts them.
    """

    def __init__(self, algorithm: Any) -> None:
        """Gives the policy to the envs.

        Args:
            algorithm: ARS, whose envs are `CandidateEnv`s.

        Raises:
            ConfigError: The envs normalise rewards alone, and ARS would merge statistics of observations.
        """
        normalize = algorithm.get_vec_normalize_env()
        if normalize is not None and not normalize.norm_obs:
            raise ConfigError(
                "normalize without norm_obs: ARS merges what its envs know of observations; "
                "leave normalize out (ARS does not see normalised rewards), or use n_envs:1"
            )
        self.remotes = range(algorithm.env.num_envs)
        if len(self.remotes) > algorithm.pop_size:
            logger.warning(
                "ARS plays %d candidates an update (2 * n_delta): %d of %d environments have nothing to do",
                *(algorithm.pop_size, len(self.remotes) - algorithm.pop_size, len(self.remotes)),
            )
        self._env = algorithm.env
        self._recorder = find_recorder(algorithm.env)
        self._n_episodes = algorithm.n_eval_episodes
        # What a run that goes on knows already, and its envs, which are new, do not.
        self._statistics = normalize.obs_rms.copy() if normalize is not None and algorithm.old_count > 0 else None
        self._after: list[Any] = []
        self._env.set_attr("policy", cloudpickle.dumps(algorithm.policy))

    def send_jobs(self, candidate_weights: torch.Tensor, pop_size: int) -> None:
        """Gives each env its candidates.

        Args:
            candidate_weights: Shape `(pop_size, n_params)`.
            pop_size: Number of candidates.
        """
        weights, workers = candidate_weights.detach().cpu(), len(self.remotes)
        for worker in self.remotes:
            # A row alone would be pickled with all the others.
            share = [(number, weights[number].clone()) for number in range(worker, pop_size, workers)]
            self._env.set_attr("jobs", Jobs(share, self._n_episodes, self._statistics), indices=[worker])
        self._statistics = None

    def get_results(self) -> list[tuple[int, tuple[list[float], list[int]]]]:
        """Lets the candidates play.

        Returns:
            Number, returns and lengths of each candidate, env by env.
        """
        answers: list[tuple[list[Played], Any]] = self._env.env_method("play")
        self._after = [statistics for _, statistics in answers]
        for worker, (results, _) in enumerate(answers):
            for episode in (episode for played in results for episode in played.episodes):
                if self._recorder is not None:
                    self._recorder.record(worker, episode)
        return [(played.number, (played.returns, played.lengths)) for results, _ in answers for played in results]

    def get_obs_rms(self) -> list[Any]:
        """The running statistics of each env's observations; None for each where nothing is normalised."""
        return self._after

    def sync_obs_rms(self, obs_rms: Any) -> None:
        """Gives all envs the same running statistics."""
        self._statistics = obs_rms

    def close(self) -> None:
        """Does nothing: the envs are the algorithm's."""


def candidate_workers(algorithm: BaseAlgorithm) -> CandidateWorkers | None:
    """The envs of an algorithm as its workers; None where it is not ARS, or its envs cannot play by themselves."""
    env = algorithm.get_env()
    if not hasattr(algorithm, "_do_one_update") or env is None or not all(env.env_is_wrapped(CandidateEnv)):
        return None
    return CandidateWorkers(algorithm)
