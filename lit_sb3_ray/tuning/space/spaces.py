"""Search spaces of all algorithms: what a trial draws, under which name, from which range.

A space does nothing but call `trial.suggest_*`, so that it works with an `optuna.Trial` as well as with any stand-in for one.
What is drawn is plain and small (exponents, distances from 1, names of networks); `conversion` makes hyperparameters of it.
"""

from __future__ import annotations

from collections.abc import Callable

from lit_sb3_ray.config.algorithms import nearest_built_in
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.tuning.space.suggesting import Suggester

ON_POLICY = frozenset({"a2c", "ppo", "ppo_lstm", "ppo_mask", "trpo"})
"""Spaces whose networks have a policy's and a value's part."""


def sample(algo: str, trial: Suggester, *, her: bool = False) -> None:
    """Draws one point of an algorithm's space.

    Args:
        algo: A name in `ALGOS` or `pkg.mod:Class`.
        trial: Draws, and keeps what it has drawn.
        her: Whether the replay buffer is a `HerReplayBuffer`, whose arguments are then drawn too.

    Raises:
        ConfigError: There is no space for the algorithm.
    """
    SPACES[space_name(algo)](trial)
    if her:
        trial.suggest_int("n_sampled_goal", 1, 5)
        trial.suggest_categorical("goal_selection_strategy", ("final", "episode", "future"))


def space_name(algo: str) -> str:
    """Finds the space of an algorithm: its own, or that of the nearest class it derives from.

    Args:
        algo: A name in `ALGOS` or `pkg.mod:Class`.

    Returns:
        A key of `SPACES`.

    Raises:
        ConfigError: There is none.
    """
    name = algo if algo in SPACES else nearest_built_in(algo)
    if name is None:
        known = ", ".join(sorted(SPACES))
        raise ConfigError(f"no search space for {algo!r}: there are spaces for {known} and what descends from them")
    return name


def _shared(trial: Suggester) -> None:
    trial.suggest_float("one_minus_gamma", 1e-4, 0.03, log=True)
    trial.suggest_float("learning_rate", 1e-5, 2e-3, log=True)


def _actor_critic(trial: Suggester, networks: tuple[str, ...]) -> None:
    _shared(trial)
    trial.suggest_float("one_minus_gae_lambda", 1e-4, 0.1, log=True)
    trial.suggest_categorical("net_arch", networks)
    trial.suggest_categorical("activation_fn", ("tanh", "relu"))


def _rollout(trial: Suggester) -> None:
    trial.suggest_int("n_steps_pow", 5, 12)
    trial.suggest_int("batch_size_pow", 2, 10)


def _ppo(trial: Suggester) -> None:
    _actor_critic(trial, ("tiny", "small", "medium"))
    _rollout(trial)
    trial.suggest_float("ent_coef", 1e-8, 0.1, log=True)
    trial.suggest_categorical("clip_range", (0.1, 0.2, 0.3, 0.4))
    trial.suggest_categorical("n_epochs", (1, 5, 10, 20))
    trial.suggest_float("max_grad_norm", 0.3, 2.0)


def _a2c(trial: Suggester) -> None:
    _actor_critic(trial, ("small", "medium"))
    trial.suggest_categorical("n_steps", (32, 64, 128, 256, 512, 1024, 2048))
    trial.suggest_float("ent_coef", 1e-8, 0.1, log=True)
    trial.suggest_float("max_grad_norm", 0.3, 2.0)


def _trpo(trial: Suggester) -> None:
    _actor_critic(trial, ("small", "medium"))
    _rollout(trial)
    trial.suggest_int("n_critic_updates", 5, 30)
    trial.suggest_int("cg_max_steps", 5, 30)
    trial.suggest_float("target_kl", 1e-3, 0.1, log=True)


def _off_policy(trial: Suggester) -> int:
    _shared(trial)
    trial.suggest_int("batch_size_pow", 2, 11)
    trial.suggest_categorical("net_arch", ("small", "medium", "big"))
    return trial.suggest_int("train_freq", 1, 10)


def _crossq(trial: Suggester) -> None:
    _off_policy(trial)  # CrossQ has no target networks, and so no tau.


def _sac(trial: Suggester) -> None:
    _off_policy(trial)
    trial.suggest_float("tau", 1e-3, 0.08, log=True)


def _tqc(trial: Suggester) -> None:
    _sac(trial)
    n_quantiles = trial.suggest_int("n_quantiles", 5, 50)
    trial.suggest_int("top_quantiles_to_drop_per_net", 0, min(n_quantiles - 1, 5))


def _td3(trial: Suggester) -> None:
    _sac(trial)
    trial.suggest_categorical("noise_type", ("ornstein-uhlenbeck", "normal", None))
    trial.suggest_float("noise_std", 0.0, 0.5)


def _dqn(trial: Suggester) -> None:
    train_freq = _off_policy(trial)
    trial.suggest_int("subsample_steps", 1, min(train_freq, 8))
    trial.suggest_float("exploration_final_eps", 0.0, 0.2)
    trial.suggest_float("exploration_fraction", 0.0, 0.5)
    trial.suggest_int("target_update_interval", 1, 20_000, log=True)


def _qrdqn(trial: Suggester) -> None:
    _dqn(trial)
    trial.suggest_int("n_quantiles", 5, 200)


def _ars(trial: Suggester) -> None:
    trial.suggest_int("n_delta_pow", 2, 6)
    trial.suggest_float("learning_rate", 1e-5, 2e-3, log=True)
    trial.suggest_float("delta_std", 0.01, 0.3)
    trial.suggest_float("top_frac_size", 0.05, 1.0)


SPACES: dict[str, Callable[[Suggester], None]] = {
    "a2c": _a2c,
    "ars": _ars,
    "crossq": _crossq,
    "ddpg": _td3,
    "dqn": _dqn,
    "ppo": _ppo,
    "ppo_lstm": _ppo,
    "ppo_mask": _ppo,
    "qrdqn": _qrdqn,
    "sac": _sac,
    "td3": _td3,
    "tqc": _tqc,
    "trpo": _trpo,
}
"""The space of each algorithm."""
