"""Batches that fit the rollout."""

from __future__ import annotations

from collections.abc import Mapping
from math import isqrt
from typing import Any

from lit_sb3_ray.config.algorithms import resolve_algorithm
from lit_sb3_ray.config.numerals import to_number
from lit_sb3_ray.config.signatures import signature_of

SIZES = frozenset({"batch_size", "n_steps"})


def fit_batch(
    algo: str, drawn: Mapping[str, Any], entry: Mapping[str, Any], overrides: Mapping[str, Any] | None, n_envs: int | None
) -> int | None:
    """Fits the batch of an on-policy algorithm to its rollout of `n_steps * n_envs` env steps.

    SB3 takes what is left over of a rollout as a truncated batch, and warns of it.

    Args:
        algo: A name in `ALGOS` or `pkg.mod:Class`.
        drawn: A trial's hyperparameters.
        entry: The file's.
        overrides: The command line's.
        n_envs: Training envs, if not those of the hyperparameters.

    Returns:
        The batch size to take instead of the trial's or, when the trial has drawn `n_steps` alone, the file's: the nearest,
        by ratio, of those that divide the rollout, and so never more than the rollout. None when there is nothing to change:
        it divides, is given on the command line, or the algorithm has no batches of rollouts. What is no number here is
        reported when the hyperparameters are resolved.
    """
    overrides = overrides or {}
    if "batch_size" in overrides or not SIZES & drawn.keys():
        return None
    merged = {**entry, **drawn, **overrides}
    rollout = rollout_of(algo, merged, n_envs)
    if rollout is None:
        return None
    batch = _count(merged.get("batch_size", _default(algo, "batch_size")))
    fitted = batch and nearest_divisor(rollout, batch)
    return None if fitted == batch else fitted


def rollout_of(algo: str, hyperparams: Mapping[str, Any], n_envs: int | None) -> int | None:
    """Counts the env steps of one rollout.

    Args:
        algo: A name in `ALGOS` or `pkg.mod:Class`.
        hyperparams: Unprocessed hyperparameters; what they leave open is as the algorithm has it of itself.
        n_envs: Training envs, if not those of the hyperparameters.

    Returns:
        Env steps of all envs together; None when the algorithm has no batches of rollouts, or a count is none.
    """
    from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm

    algorithm: type[Any] = resolve_algorithm(algo)
    if not issubclass(algorithm, OnPolicyAlgorithm) or not signature_of(algorithm).parameters.keys() >= SIZES:
        return None
    n_steps = _count(hyperparams.get("n_steps", _default(algo, "n_steps")))
    envs = _count(n_envs or hyperparams.get("n_envs", 1))
    return None if n_steps is None or envs is None else n_steps * envs


def nearest_divisor(number: int, wanted: int) -> int:
    """Finds the divisor of `number` that is nearest to `wanted` by ratio, the smaller of two; 1 only of 1.

    A batch of one cannot be normalised, and PPO refuses it.
    """
    small = [divisor for divisor in range(1, isqrt(number) + 1) if number % divisor == 0]
    divisors = sorted({*small, *(number // divisor for divisor in small)} - ({1} if number > 1 else set()))
    return min(divisors, key=lambda divisor: max(divisor / wanted, wanted / divisor))


def _default(algo: str, name: str) -> Any:
    algorithm: type[Any] = resolve_algorithm(algo)
    return signature_of(algorithm).parameters[name].default


def _count(value: Any) -> int | None:
    number = to_number(value)
    return int(number) if number is not None and 1 <= number < float("inf") and number == number // 1 else None
