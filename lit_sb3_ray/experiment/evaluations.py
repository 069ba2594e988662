"""Evaluations during training: every so many env steps, the history in `evaluations.npz`, the best model kept."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback, EvalCallback
from stable_baselines3.common.vec_env import VecEnv, sync_envs_normalization

from lit_sb3_ray.experiment.run_folder import RunFolder, replace_file
from lit_sb3_ray.lit.evaluation import Evaluation, evaluate, evaluation_seed
from lit_sb3_ray.lit.refusals import refusing

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class EvaluationPlan:
    """When and how a run is evaluated.

    Attributes:
        freq: Env steps between two evaluations.
        n_episodes: Episodes of each.
        deterministic: Whether the policy's mode is played.
        seed: The run's seed, which gives evaluations a random stream of their own.
        use_masking: Whether action masks are used where there are any.
    """

    freq: int
    n_episodes: int = 5
    deterministic: bool = True
    seed: int = 0
    use_masking: bool = True


class EvaluationCallback(EvalCallback):
    """SB3's EvalCallback on the clock of env steps, writing whole files and each best model with its own statistics.

    It draws nothing from the training's random streams: a run learns the same with and without it.
    """

    def __init__(
        self,
        eval_env: VecEnv,
        plan: EvaluationPlan,
        run: RunFolder,
        callback_on_new_best: BaseCallback | None = None,
        callback_after_eval: BaseCallback | None = None,
        verbose: int = 1,
    ) -> None:
        """Prepares evaluations.

        Args:
            eval_env: Where to play.
            plan: When and how.
            run: Where results and the best model go.
            callback_on_new_best: Called at each new best.
            callback_after_eval: Called after each evaluation; False ends training.
            verbose: 1 tells of each evaluation.
        """
        super().__init__(
            eval_env,
            callback_on_new_best=callback_on_new_best,
            callback_after_eval=callback_after_eval,
            n_eval_episodes=plan.n_episodes,
            eval_freq=plan.freq,
            deterministic=plan.deterministic,
            verbose=verbose,
            warn=False,
        )
        self.plan = plan
        self.run = run
        self.next_at = plan.freq
        self.history = read_evaluations(run.evaluations)

    def state_dict(self) -> dict[str, Any]:
        """Best and last mean return; the history is in its file."""
        return {"best_mean_reward": float(self.best_mean_reward), "last_mean_reward": float(self.last_mean_reward)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Puts back what `state_dict` gave."""
        self.best_mean_reward = state["best_mean_reward"]
        self.last_mean_reward = state["last_mean_reward"]

    def _init_callback(self) -> None:
        # SB3's own compares the classes of the two envs, and makes folders that are here already.
        if self.callback_on_new_best is not None:
            self.callback_on_new_best.init_callback(self.model)

    def _on_training_start(self) -> None:
        super()._on_training_start()
        self.next_at = (self.model.num_timesteps // self.plan.freq + 1) * self.plan.freq

    def _on_step(self) -> bool:
        if self.num_timesteps < self.next_at:
            return True
        self.next_at = (self.num_timesteps // self.plan.freq + 1) * self.plan.freq
        result = self._evaluate()
        self._record(result)
        going = True
        if result.mean_reward > self.best_mean_reward:
            logger.info("New best mean reward")
            self.best_mean_reward = result.mean_reward
            save_model(self.model, self.run.best, self.run.best_statistics)
            if self.callback_on_new_best is not None:
                going = self.callback_on_new_best.on_step()
        if self.callback is not None:
            going = going and self._on_event()
        return going

    def _evaluate(self) -> Evaluation:
        if self.model.get_vec_normalize_env() is not None:
            sync_envs_normalization(self.training_env, self.eval_env)
        return evaluate(
            self.model,
            self.eval_env,
            self.plan.n_episodes,
            deterministic=self.plan.deterministic,
            seed=evaluation_seed(self.plan.seed, self.num_timesteps),
            use_masking=self.plan.use_masking,
        )

    def _record(self, result: Evaluation) -> None:
        self.last_mean_reward = result.mean_reward
        append_evaluation(self.history, self.num_timesteps, result)
        write_evaluations(self.run.evaluations, self.history)
        if self.verbose > 0:
            logger.info(
                "Evaluation at %d steps: mean reward %.2f +/- %.2f, mean episode length %.1f",
                self.num_timesteps,
                result.mean_reward,
                result.std_reward,
                result.mean_ep_length,
            )
        self.logger.record("eval/mean_reward", result.mean_reward)
        self.logger.record("eval/mean_ep_length", result.mean_ep_length)
        if result.success_rate is not None:
            self.logger.record("eval/success_rate", result.success_rate)
        self.logger.record("time/total_timesteps", self.num_timesteps, exclude="tensorboard")
        self.logger.dump(self.num_timesteps)


History = dict[str, list[Any]]


def read_evaluations(path: Path) -> History:
    """Reads `evaluations.npz`.

    Returns:
        `timesteps` (n_evaluations), `results` and `ep_lengths` (n_evaluations, n_episodes), and `successes` if the env tells
        any; empty lists where there is no file.

    Raises:
        ConfigError: The file is none of ours.
    """
    history: History = {"timesteps": [], "results": [], "ep_lengths": []}
    if path.exists():
        with refusing(f"{path} holds no evaluations"), np.load(path) as file:
            history.update({name: file[name].tolist() for name in file.files})
    return history


def append_evaluation(history: History, num_timesteps: int, result: Evaluation) -> None:
    """Adds one evaluation to a history."""
    history["timesteps"].append(num_timesteps)
    history["results"].append(list(result.returns))
    history["ep_lengths"].append(list(result.lengths))
    # An env that tells only some episodes' success leaves a row that fits no table.
    if result.successes and len(result.successes) == len(result.returns):
        history.setdefault("successes", []).append(list(result.successes))


def write_evaluations(path: Path, history: History) -> None:
    """Writes `evaluations.npz`, whole or not at all."""
    arrays: dict[str, Any] = {name: np.array(rows) for name, rows in history.items()}
    replace_file(path, lambda partial: np.savez(partial, **arrays))


def cut_evaluations(path: Path, last_step: int) -> None:
    """Removes the evaluations that are later than an env step."""
    history = read_evaluations(path)
    kept = sum(step <= last_step for step in history["timesteps"])
    if kept < len(history["timesteps"]):
        write_evaluations(path, {name: rows[:kept] for name, rows in history.items()})


def save_model(model: Any, path: Path, statistics: Path) -> None:
    """Writes a model and the normalisation statistics that it needs; nothing but a rename lies between the two."""
    normalize = model.get_vec_normalize_env()

    def write(partial: Path) -> None:
        model.save(partial)
        if normalize is not None:
            replace_file(statistics, lambda other: normalize.save(str(other)))

    replace_file(path, write)
