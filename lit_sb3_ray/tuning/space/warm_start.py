"""The point of a space that lies nearest to given hyperparameters."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lit_sb3_ray.config.algorithms import resolve_algorithm
from lit_sb3_ray.config.numerals import to_number
from lit_sb3_ray.config.signatures import signature_of
from lit_sb3_ray.tuning.space.batch import rollout_of
from lit_sb3_ray.tuning.space.conversion import ACTIVATIONS, COMPLEMENT, HER_KEYS, NETWORKS, POWER
from lit_sb3_ray.tuning.space.nesting import as_dict, look_up
from lit_sb3_ray.tuning.space.probing import begin_probe
from lit_sb3_ray.tuning.space.spaces import ON_POLICY, space_name

if TYPE_CHECKING:
    from lit_sb3_ray.tuning.space.search_space import SearchSpace

# What the algorithms have where nothing is said.
_NETWORKS = {"sac": "medium", "tqc": "medium", "crossq": "medium", "td3": "big", "ddpg": "big"}
_QUANTILES = {"tqc": 25, "qrdqn": 200}
_HINDSIGHT = {"n_sampled_goal": 4, "goal_selection_strategy": "future"}


def packaged_params(space: SearchSpace, entry: Mapping[str, Any], n_envs: int | None = None) -> dict[str, Any]:
    """Finds the values that a trial would have to draw to come nearest to a file's hyperparameters.

    They are for the trial's row in the study, where samplers learn from them; a trial that is to train as the file says takes
    the file's entry itself.

    Args:
        space: The space.
        entry: The file's hyperparameters, unprocessed.
        n_envs: Training envs, if not those of the hyperparameters.

    Returns:
        A value for each parameter, within the distributions of the space.

    Raises:
        ConfigError: The entry has something unreadable.
    """
    trial = begin_probe(space.towards(entry, n_envs))
    space.sample(trial)
    return dict(trial.params)


def wishes(algo: str, hyperparams: Mapping[str, Any], n_envs: int | None = None) -> dict[str, Any]:
    """Goes back from hyperparameters to what would have to be drawn from the algorithm's built-in space.

    Args:
        algo: A name in `ALGOS` or `pkg.mod:Class`.
        hyperparams: Unprocessed hyperparameters; what they leave open is as the algorithm has it of itself. Of a schedule it
            is the value at its start.
        n_envs: Training envs, if not those of the hyperparameters.

    Returns:
        Values by the names of the built-in spaces, whether this space has them or not. Numbers may lie outside of the space
        or between its steps; `net_arch` is the widths of the layers.

    Raises:
        ConfigError: There is a dict that cannot be read.
    """
    name = space_name(algo)
    parameters = signature_of(resolve_algorithm(algo)).parameters
    values = {key: parameter.default for key, parameter in parameters.items()} | dict(hyperparams)
    numbers = {key: number for key, value in values.items() if (number := start_of(value)) is not None}
    rollout = rollout_of(algo, values, n_envs)
    if rollout is not None and "batch_size" in numbers:
        numbers["batch_size"] = min(numbers["batch_size"], rollout)
    wished: dict[str, Any] = {"noise_type": values.get("noise_type"), **numbers}
    for key, number in numbers.items():
        wished[f"{COMPLEMENT}{key}"] = 1 - number
        if number > 0:
            wished[f"{key}{POWER}"] = math.log2(number)
    if numbers.get("gradient_steps", 0) > 0:
        wished["subsample_steps"] = numbers.get("train_freq", 1) / numbers["gradient_steps"]
    else:  # As many updates as env steps.
        wished["subsample_steps"] = 1
    if numbers.get("n_delta"):
        wished["top_frac_size"] = numbers.get("n_top", numbers["n_delta"]) / numbers["n_delta"]
    wished |= _of_the_policy(name, as_dict(values.get("policy_kwargs"), "policy_kwargs"))
    buffer = as_dict(values.get("replay_buffer_kwargs"), "replay_buffer_kwargs")
    return wished | {key: buffer.get(key, _HINDSIGHT[key]) for key in HER_KEYS}


def value_of(name: str, algo: str, hyperparams: Mapping[str, Any]) -> Any:
    """Finds a hyperparameter by its name with dots; where nothing is said, it is as the algorithm has it of itself."""
    found = look_up(name, hyperparams)
    parameter = signature_of(resolve_algorithm(algo)).parameters.get(name)
    return parameter.default if found is None and parameter is not None else found


def start_of(value: Any) -> int | float | None:
    """Gives the number that a hyperparameter starts with: of a schedule its start, of `[4, "step"]` the 4; None if none."""
    if isinstance(value, list | tuple) and value:
        value = value[0]
    if isinstance(value, Mapping):
        value = value.get("start", value.get("value"))
    if isinstance(value, str) and value.startswith(("lin_", "cos_")):
        value = value.split("_")[1]
    number = to_number(value)
    return number if number is not None and math.isfinite(number) else None


def nearest_network(layers: Sequence[int], names: Sequence[str]) -> str:
    """Finds the network whose depth and units come nearest to those of the layers."""

    def distance(name: str) -> float:
        known = NETWORKS[name]
        return abs(len(known) - len(layers)) + abs(math.log2(sum(known) / max(sum(layers), 1)))

    return min(names, key=distance)


def _of_the_policy(space: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    layers = arguments.get("net_arch")
    if isinstance(layers, Mapping):
        layers = next(iter(layers.values()), None)
    if not isinstance(layers, list | tuple) or not all(isinstance(width, int) for width in layers):
        layers = NETWORKS[_NETWORKS.get(space, "small")]
    activation = arguments.get("activation_fn", "Tanh" if space in ON_POLICY else "ReLU")
    label = activation.__name__ if isinstance(activation, type) else str(activation).rpartition(".")[2]
    names = {path.rpartition(".")[2]: name for name, path in ACTIVATIONS.items()}
    quantiles = to_number(arguments.get("n_quantiles"))
    return {
        "net_arch": layers,
        "activation_fn": names.get(label, "relu"),  # What is no tanh is more like a rectifier.
        "n_quantiles": _QUANTILES.get(space) if quantiles is None else quantiles,
    }
