"""Evaluations during training: every so many env steps, the history in `evaluations.npz`, the best model kept."""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback, EvalCallback, EventCallback
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.vec_env import VecEnv, sync_envs_normalization

from lit_sb3_ray.errors import ConfigError
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

    state_name = "EvaluationCallback"

    def __init__(
        self,
        eval_env: VecEnv | None,
        plan: EvaluationPlan,
        run: RunFolder,
        callback_on_new_best: BaseCallback | None = None,
        callback_after_eval: BaseCallback | None = None,
        verbose: int = 1,
    ) -> None:
        """Prepares evaluations.

        Args:
            eval_env: Where to play; None for a subclass that plays elsewhere.
            plan: When and how.
            run: Where results and the best model go.
            callback_on_new_best: Called at each new best.
            callback_after_eval: Called after each evaluation; False ends training.
            verbose: 1 tells of each evaluation.
        """
        # SB3's own wants an env in this process; what it sets beside that is what callbacks look for in their parent.
        EventCallback.__init__(self, callback_after_eval, verbose)
        self.callback_on_new_best = callback_on_new_best
        if callback_on_new_best is not None:
            callback_on_new_best.parent = self
        self.eval_env = eval_env  # type: ignore[assignment]
        self.n_eval_episodes, self.eval_freq, self.deterministic = plan.n_episodes, plan.freq, plan.deterministic
        self.best_mean_reward = self.last_mean_reward = -np.inf
        self.plan = plan
        self.run = run
        self.next_at = plan.freq
        self.history = read_evaluations(run.evaluations)

    def state_dict(self) -> dict[str, Any]:
        """Best and last mean return; the history is in its file."""
        return {"best_mean_reward": float(self.best_mean_reward), "last_mean_reward": float(self.last_mean_reward)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Puts back what `state_dict` gave.

        Raises:
            ConfigError: There are copies whose evaluation was not waited for.
        """
        if state.get("pending"):
            raise ConfigError(
                f"the evaluations at {', '.join(map(str, state['pending']))} env steps are still to be done: "
                "the run goes on with async_eval=True only"
            )
        self._load_best(state)

    def _load_best(self, state: dict[str, Any]) -> None:
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
        return not self._is_due() or self._conclude(self.num_timesteps, self._evaluate())

    def _is_due(self) -> bool:
        if self.num_timesteps < self.next_at:
            return False
        self.next_at = (self.num_timesteps // self.plan.freq + 1) * self.plan.freq
        return True

    def _conclude(self, step: int, result: Evaluation) -> bool:
        """Records an evaluation of the model of an env step and calls the callbacks; False ends training."""
        self._record(step, result)
        going = True
        if result.mean_reward > self.best_mean_reward:
            logger.info("New best mean reward")
            self.best_mean_reward = result.mean_reward
            self._keep_best(step)
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

    def _keep_best(self, step: int) -> None:
        save_model(self.model, self.run.best, self.run.best_statistics)

    def _output(self) -> Logger:
        """Where the metrics go."""
        return self.logger

    def _record(self, step: int, result: Evaluation) -> None:
        self.last_mean_reward = result.mean_reward
        append_evaluation(self.history, step, result)
        write_evaluations(self.run.evaluations, self.history)
        if self.verbose > 0:
            logger.info(
                "Evaluation at %d steps: mean reward %.2f +/- %.2f, mean episode length %.1f",
                step,
                result.mean_reward,
                result.std_reward,
                result.mean_ep_length,
            )
        output = self._output()
        output.record("eval/mean_reward", result.mean_reward)
        output.record("eval/mean_ep_length", result.mean_ep_length)
        if result.success_rate is not None:
            output.record("eval/success_rate", result.success_rate)
        output.record("time/total_timesteps", step, exclude="tensorboard")
        output.dump(step)


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


def cut_evaluations(path: Path, last_step: int, without: Collection[int] = ()) -> None:
    """Removes the evaluations that are later than an env step, and those at further ones."""
    history = read_evaluations(path)
    steps = history["timesteps"]
    kept = [row for row, step in enumerate(steps) if step <= last_step and step not in without]
    if len(kept) < len(steps):
        write_evaluations(path, {name: [rows[row] for row in kept] for name, rows in history.items()})


def save_model(model: Any, path: Path, statistics: Path) -> None:
    """Writes a model and the normalisation statistics that it needs; nothing but a rename lies between the two."""
    normalize = model.get_vec_normalize_env()

    def write(partial: Path) -> None:
        model.save(partial)
        if normalize is not None:
            replace_file(statistics, lambda other: normalize.save(str(other)))

    replace_file(path, write)
