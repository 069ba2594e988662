"""Evaluations that an Optuna trial hears of, for studies of one's own."""

from __future__ import annotations

from typing import Protocol

from stable_baselines3.common.callbacks import EvalCallback
from stable_baselines3.common.vec_env import VecEnv


class Trial(Protocol):
    """What is needed of an `optuna.Trial`."""

    def report(self, value: float, step: int) -> None:
        """Takes a value."""

    def should_prune(self) -> bool:
        """Says whether the trial is to end."""


class TrialEvalCallback(EvalCallback):
    """Reports each evaluation to an Optuna trial, and ends training when the trial is pruned.

    For an objective function of one's own. The studies of this package evaluate and prune by themselves.

    Attributes:
        is_pruned: Whether the trial's pruner has ended the training.
        eval_idx: Evaluations so far, which the trial takes as its steps.
    """

    def __init__(
        self,
        eval_env: VecEnv,
        trial: Trial,
        n_eval_episodes: int = 5,
        eval_freq: int = 10000,
        deterministic: bool = True,
        verbose: int = 0,
        best_model_save_path: str | None = None,
        log_path: str | None = None,
    ) -> None:
        """Prepares evaluations.

        Args:
            eval_env: Where to play.
            trial: The trial.
            n_eval_episodes: Episodes of each evaluation.
            eval_freq: Calls between two evaluations, as SB3 counts: one a step of all envs; below 1 for none.
            deterministic: Whether the policy's mode is played.
            verbose: As SB3's.
            best_model_save_path: Folder for the best model; None for none.
            log_path: Folder for `evaluations.npz`; None for none.
        """
        super().__init__(
            eval_env,
            n_eval_episodes=n_eval_episodes,
            eval_freq=eval_freq,
            deterministic=deterministic,
            verbose=verbose,
            best_model_save_path=best_model_save_path,
            log_path=log_path,
        )
        self.trial = trial
        self.eval_idx = 0
        self.is_pruned = False

    def _on_step(self) -> bool:
        going = super()._on_step()
        if self.eval_freq < 1 or self.n_calls % self.eval_freq != 0:
            return going
        self.eval_idx += 1
        self.trial.report(float(self.last_mean_reward), self.eval_idx)
        self.is_pruned = self.trial.should_prune()
        return going and not self.is_pruned
