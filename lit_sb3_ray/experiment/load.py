"""Opening a finished run, ours or rl_zoo3's: its model and envs to play it in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.vec_env import VecEnv, unwrap_vec_normalize

from lit_sb3_ray.config.hyperparams import Hyperparams, resolve
from lit_sb3_ray.config.schedules import SCHEDULE_KEYS
from lit_sb3_ray.envs.families import monitor_defaults, register_env
from lit_sb3_ray.envs.monitor import MonitorFiles
from lit_sb3_ray.envs.spec import EnvSpec
from lit_sb3_ray.envs.vector import build_vec_env
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.experiment import run_folder
from lit_sb3_ray.experiment.locate import Which, env_folder_name, find_model
from lit_sb3_ray.experiment.origin import is_trusted
from lit_sb3_ray.experiment.run_folder import RunFolder
from lit_sb3_ray.lit.refusals import refusing
from lit_sb3_ray.untrusted.models import read_custom_objects
from lit_sb3_ray.untrusted.wrappers import refuse_writers

# A policy that only plays needs no schedules, and those of another package's run may not be importable here.
PLAYED = {"learning_rate": 0.0, "lr_schedule": lambda _: 0.0, "clip_range": lambda _: 0.0}

# What else may be a function, and so code; it is not read from others' files.
NOT_READ = {**PLAYED, "clip_range_vf": None, "exploration_schedule": None, "action_noise": None}

# Only training needs these, and what a config.yml holds of a function or an object can be no more than its name.
NOT_PLAYED = SCHEDULE_KEYS | {"callback", "noise_type", "noise_std"}


def load_run(
    path: str | Path,
    which: Which = "final",
    *,
    algo: str | None = None,
    env_id: str | None = None,
    env_kwargs: Mapping[str, Any] | None = None,
    n_envs: int = 1,
    seed: int = 0,
    device: str = "auto",
    render_mode: str | None = None,
    norm_reward: bool = False,
    monitor_folder: Path | None = None,
    gym_packages: Sequence[str] = (),
    trusted: bool | None = None,
) -> tuple[BaseAlgorithm, VecEnv]:
    """Opens a run folder.

    A model and its statistics are pickles, and reading a pickle runs what its maker wrote into it. Runs that were downloaded
    from the Hub, by this package or rl_zoo3, are therefore read with a list of classes (`untrusted.classes`), and refused
    where they hold anything else or would import modules that `gym_packages` does not name; schedules and action noise, which
    may be functions and are not needed to play, are left unread. All other folders are taken for your own and are read as
    Stable-Baselines3 does: give `trusted=False` for one that came to you in another way.

    Args:
        path: The run folder, of this package or of rl_zoo3.
        which: `final`, `best`, or the env steps of a model saved on the way.
        algo: The algorithm; None for what the run says.
        env_id: The environment; None for what the run says.
        env_kwargs: Go over the run's own, key by key.
        n_envs: Envs to make.
        seed: Seeds the envs.
        device: torch device, or `auto`.
        render_mode: gymnasium's render mode.
        norm_reward: Whether rewards are normalised, where observations are.
        monitor_folder: Folder for monitor files; None for none.
        gym_packages: Further modules to import for the env.
        trusted: Whether the run's files may be run as code; None for what the run's origin says.

    Returns:
        The model, and its envs with frozen statistics.

    Raises:
        ConfigError: There is no such run or model, it cannot be loaded, or it holds what is not read from others' files.
    """
    run = run_folder.open_run(path, env_id)
    arguments = _arguments(run)
    algo = algo or arguments.get("algo")
    if algo is None:
        raise ConfigError(f"{run.path} does not say its algorithm: name it")
    trusted = is_trusted(run.settings) if trusted is None else trusted
    packages = [*_packages(run, arguments), *gym_packages]
    unasked = [] if trusted else [name for name in packages if name not in gym_packages]
    if unasked:
        names = ", ".join(unasked)
        raise ConfigError(f"{str(run.path)!r} is from others and would import {names}: --gym-packages {names} would allow it")
    register_env(run.env_id, packages)
    # How long it was to train does not matter here, and may have been said on the command line alone.
    saved = run_folder.read_hyperparameters(run)
    needed = {key: value for key, value in saved.items() if key not in NOT_PLAYED}
    resolved = resolve(needed, algo, str(run.settings / "config.yml"), n_timesteps=1)
    model_path = find_model(run.path, run.env_id, which)
    if not trusted:
        refuse_writers([*resolved.env_wrappers, *resolved.vec_env_wrappers], str(run.settings / "config.yml"))
    env = _build_env(
        run, resolved, arguments, model_path, env_kwargs or {}, n_envs, seed, render_mode, monitor_folder, packages, trusted
    )
    normalize = unwrap_vec_normalize(env)
    if normalize is not None:
        normalize.norm_reward = norm_reward
    try:
        return load_model(model_path, resolved, env, device, seed, trusted=trusted), env
    except ConfigError:
        env.close()
        raise


def _packages(run: RunFolder, arguments: Mapping[str, Any]) -> list[str]:
    names = arguments.get("gym_packages") or []
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise ConfigError(f"{run.settings / 'args.yml'}: gym_packages must be a list of modules, not {names!r}")
    return list(names)


def load_model(
    path: Path | IO[bytes], resolved: Hyperparams, env: VecEnv, device: str, seed: int, *, trusted: bool = True
) -> BaseAlgorithm:
    """Loads a model to play with: without room for a replay buffer, and without schedules.

    Args:
        path: The model's file.
        resolved: Its hyperparameters.
        env: Where it is to play.
        device: torch device, or `auto`.
        seed: Seeds it.
        trusted: Whether its pickles may be run; see `load_run`.

    Raises:
        ConfigError: The file cannot be read as the algorithm's.
    """
    options: dict[str, Any] = {"seed": seed}
    if issubclass(resolved.algo_class, OffPolicyAlgorithm):
        options |= {"buffer_size": 1}
        if "optimize_memory_usage" in resolved.model_kwargs:
            options |= {"optimize_memory_usage": False}
    with refusing(f"{path} cannot be loaded as {resolved.algo_class.__name__}"):
        objects = PLAYED if trusted else read_custom_objects(path, NOT_READ)
        model: BaseAlgorithm = resolved.algo_class.load(path, env=env, custom_objects=objects, device=device, **options)
    return model


def _arguments(run: RunFolder) -> dict[str, Any]:
    """The run's arguments; runs from the Hub may have none."""
    return run_folder.read_arguments(run) if (run.settings / "args.yml").exists() else {}


def _build_env(
    run: RunFolder,
    resolved: Hyperparams,
    arguments: Mapping[str, Any],
    model_path: Path,
    env_kwargs: Mapping[str, Any],
    n_envs: int,
    seed: int,
    render_mode: str | None,
    monitor_folder: Path | None,
    packages: Sequence[str],
    trusted: bool,
) -> VecEnv:
    own = {**resolved.env_kwargs, **(arguments.get("env_kwargs") or {})}
    rendered = {} if render_mode is None else {"render_mode": render_mode}
    spec = EnvSpec(
        run.env_id,
        {**own, **rendered, **env_kwargs},
        resolved.env_wrappers,
        monitor_defaults(run.env_id, resolved.monitor_kwargs),
        tuple(packages),
    )
    if rendered and not spec.takes("render_mode"):
        raise ConfigError(f"environment {run.env_id!r} cannot be shown or recorded: its constructor takes no render_mode")
    statistics = run.statistics_of(model_path)
    if resolved.normalize is not None and not statistics.exists():
        name = env_folder_name(run.env_id)
        raise ConfigError(f"{run.path} was trained with normalize, but its statistics {name}/vecnormalize.pkl are missing")
    return build_vec_env(
        spec,
        n_envs,
        seed=seed,
        vec_env_wrappers=resolved.vec_env_wrappers,
        normalize=resolved.normalize,
        training=False,
        frame_stack=resolved.frame_stack,
        stats_path=statistics if statistics.exists() else None,
        stats_trusted=trusted,
        monitor=None if monitor_folder is None else MonitorFiles(monitor_folder),
    )
