"""The state of training at an iteration boundary: what a checkpoint holds, and an in-memory copy of it.

A signal may arrive in the middle of a rollout or an update that still takes minutes. The copy taken at a boundary
before it is the newest consistent state, and is put back before anything is saved.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback, CallbackList, EventCallback
from stable_baselines3.common.save_util import recursive_getattr, recursive_setattr
from stable_baselines3.common.vec_env import VecNormalize

from lit_sb3_ray.lit.replay import buffer_position, move_back

# Where and how an algorithm runs is the new process's business, not the saved state's.
PLACEMENT = ("verbose", "tensorboard_log", "n_envs", "policy_class", "_last_obs")
STATISTICS = ("obs_rms", "ret_rms")


@dataclass(frozen=True)
class Snapshot:
    """An in-memory copy of everything that an iteration changes; of the replay buffer, where it stood.

    Attributes:
        attributes: The algorithm's own attributes that its zip file would hold.
        parameters: State dicts of networks and optimizers.
        variables: Loose tensors, such as SAC's entropy coefficient.
        statistics: Running means and variances of `VecNormalize`; empty without one.
        rng: States of the global random generators.
        callbacks: States of the callbacks, see `callback_states`.
        metrics: What the logger holds and has not dumped, see `pending_metrics`.
        buffer: Where the replay buffer stood, see `buffer_position`; empty without one.
        iteration: The session's iteration count.
        extra: Whatever the caller wants kept with it.
    """

    attributes: dict[str, Any]
    parameters: dict[str, Any]
    variables: dict[str, torch.Tensor]
    statistics: dict[str, Any]
    rng: dict[str, Any]
    callbacks: list[dict[str, Any]]
    metrics: dict[str, list[Any]]
    buffer: dict[str, Any]
    iteration: int
    extra: dict[str, Any]


def capture(algorithm: BaseAlgorithm, callback: BaseCallback, iteration: int, extra: dict[str, Any]) -> Snapshot:
    """Copies the state of training; the copy shares no memory with what it was taken from."""
    _, variable_names = algorithm._get_torch_save_params()
    buffer = getattr(algorithm, "replay_buffer", None)
    return Snapshot(
        attributes=copy.deepcopy(own_attributes(algorithm)),
        parameters=copy.deepcopy(algorithm.get_parameters()),
        variables={name: recursive_getattr(algorithm, name).detach().clone() for name in variable_names},
        statistics=copy.deepcopy(normalize_statistics(algorithm)),
        rng=rng_states(),
        callbacks=callback_states(callback),
        metrics=pending_metrics(algorithm),
        buffer={} if buffer is None else buffer_position(buffer),
        iteration=iteration,
        extra=copy.deepcopy(extra),
    )


def restore(snapshot: Snapshot, algorithm: BaseAlgorithm, callback: BaseCallback) -> None:
    """Puts a snapshot back into the algorithm, its `VecNormalize`, the callbacks and the global generators.

    What is put back are copies: an optimizer, for one, goes on in the very tensors it is given.
    """
    algorithm.__dict__.update(copy.deepcopy(snapshot.attributes))
    algorithm.set_parameters(copy.deepcopy(snapshot.parameters), exact_match=True, device=algorithm.device)
    for name, value in snapshot.variables.items():
        recursive_setattr(algorithm, f"{name}.data", value.clone())
    set_normalize_statistics(algorithm, snapshot.statistics)
    set_callback_states(callback, copy.deepcopy(snapshot.callbacks))
    set_pending_metrics(algorithm, snapshot.metrics)
    if snapshot.buffer:
        move_back(algorithm.replay_buffer, snapshot.buffer)  # type: ignore[attr-defined]
    set_rng_states(snapshot.rng)


def own_attributes(algorithm: BaseAlgorithm) -> dict[str, Any]:
    """The attributes that the algorithm's `save` writes as data (networks, buffers, env and logger are not among them)."""
    state_dicts, variables = algorithm._get_torch_save_params()
    excluded = set(algorithm._excluded_save_params()) | {name.split(".")[0] for name in [*state_dicts, *variables]}
    return {name: value for name, value in algorithm.__dict__.items() if name not in excluded and not _aliases_network(value)}


def normalize_statistics(algorithm: BaseAlgorithm) -> dict[str, Any]:
    """Running statistics of the algorithm's `VecNormalize`; empty without one."""
    env = algorithm.get_vec_normalize_env()
    return {} if env is None else {name: getattr(env, name) for name in STATISTICS if hasattr(env, name)}


def set_normalize_statistics(algorithm: BaseAlgorithm, statistics: dict[str, Any] | VecNormalize) -> None:
    """Gives the algorithm's `VecNormalize` copies of other statistics."""
    env = algorithm.get_vec_normalize_env()
    if env is None:
        return
    if isinstance(statistics, VecNormalize):
        statistics = {name: getattr(statistics, name) for name in STATISTICS if hasattr(statistics, name)}
    for name, value in statistics.items():
        setattr(env, name, copy.deepcopy(value))


def rng_states() -> dict[str, Any]:
    """States of Python's, NumPy's and torch's global generators, as plain JSON values."""
    version, internal, gauss = random.getstate()
    kind, keys, position, has_gauss, cached = np.random.get_state()
    states = {
        "python": [version, list(internal), gauss],
        "numpy": [kind, np.asarray(keys).tolist(), position, has_gauss, cached],
        "torch": bytes(torch.get_rng_state().tolist()).hex(),
    }
    if torch.cuda.is_available():
        states["cuda"] = [bytes(state.tolist()).hex() for state in torch.cuda.get_rng_state_all()]
    return states


def set_rng_states(states: dict[str, Any]) -> None:
    """Puts back what `rng_states` returned; states of GPUs that are not here are left out."""
    version, internal, gauss = states["python"]
    random.setstate((version, tuple(internal), gauss))
    kind, keys, position, has_gauss, cached = states["numpy"]
    np.random.set_state((kind, np.asarray(keys, dtype=np.uint32), position, has_gauss, cached))
    torch.set_rng_state(_byte_tensor(states["torch"]))
    if torch.cuda.is_available():
        for device, state in enumerate(states.get("cuda", [])[: torch.cuda.device_count()]):
            torch.cuda.set_rng_state(_byte_tensor(state), device)


def walk(callback: BaseCallback) -> list[BaseCallback]:
    """A callback and all that hang on it, in a fixed order."""
    found = [callback]
    if isinstance(callback, CallbackList):
        for child in callback.callbacks:
            found += walk(child)
    for name in ("callback", "callback_on_new_best"):
        hung = getattr(callback, name, None)
        if isinstance(callback, EventCallback) and isinstance(hung, BaseCallback):
            found += walk(hung)
    return found


def callback_states(callback: BaseCallback) -> list[dict[str, Any]]:
    """States of a callback and all that hang on it.

    A callback with `state_dict` and `load_state_dict` says itself what it keeps; of others, each attribute that is a
    plain value (number, string, boolean, None, or lists of these) is kept.

    Returns:
        One entry a callback, with its class's name (or its `state_name`, which classes that stand in for each other share), in
        `walk`'s order; plain JSON values.
    """
    states = []
    for item in walk(callback):
        plain = item.state_dict() if hasattr(item, "state_dict") else {k: v for k, v in vars(item).items() if _is_plain(v)}
        states.append({"class": _state_name(item), "state": _to_plain(plain)})
    return states


def set_callback_states(callback: BaseCallback, states: list[dict[str, Any]]) -> None:
    """Gives callbacks their states back; a callback that was not there when they were taken keeps its own."""
    waiting = list(states)
    for item in walk(callback):
        position = next((i for i, state in enumerate(waiting) if state["class"] == _state_name(item)), None)
        if position is None:
            continue
        state = waiting.pop(position)["state"]
        if hasattr(item, "load_state_dict"):
            item.load_state_dict(state)
        else:
            vars(item).update({name: value for name, value in state.items() if name != "verbose"})


def _state_name(callback: BaseCallback) -> str:
    name: str = getattr(callback, "state_name", type(callback).__name__)
    return name


def pending_metrics(algorithm: BaseAlgorithm) -> dict[str, list[Any]]:
    """What an algorithm's logger holds and has not dumped yet; what `train()` records is dumped an iteration later.

    Returns:
        Value, number of values it is the mean of, and the outputs that do not want it, by name; plain JSON values.
    """
    logger = algorithm.logger
    return {
        name: [_to_plain(value), logger.name_to_count.get(name, 0), list(logger.name_to_excluded.get(name) or ())]
        for name, value in logger.name_to_value.items()
        if isinstance(value, bool | int | float | str | np.number)
    }


def set_pending_metrics(algorithm: BaseAlgorithm, metrics: Mapping[str, list[Any]]) -> None:
    """Makes an algorithm's logger hold what `pending_metrics` returned, and nothing else."""
    logger = algorithm.logger
    for held in (logger.name_to_value, logger.name_to_count, logger.name_to_excluded):
        held.clear()
    for name, (value, count, excluded) in metrics.items():
        logger.name_to_value[name] = value
        logger.name_to_count[name] = count
        logger.name_to_excluded[name] = tuple(excluded)


def _aliases_network(value: object) -> bool:
    """Whether a value is a list of a network's own tensors (`batch_norm_stats`), which a copy would cut off from it."""
    return isinstance(value, list) and any(isinstance(item, torch.Tensor) for item in value)


def _byte_tensor(text: str) -> torch.Tensor:
    return torch.frombuffer(bytearray.fromhex(text), dtype=torch.uint8)


def _is_plain(value: object) -> bool:
    if isinstance(value, list):
        return all(_is_plain(item) for item in value)
    return value is None or isinstance(value, bool | int | float | str | np.number)


def _to_plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _to_plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_to_plain(item) for item in value]
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    return value
