"""What an experiment would do, as text: the answer to `--dry-run`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from lit_sb3_ray.config.plain import to_plain
from lit_sb3_ray.experiment.locate import algo_folder_name, env_folder_name
from lit_sb3_ray.experiment.stepping import named

if TYPE_CHECKING:
    from lit_sb3_ray.experiment.manager import ExperimentManager


def describe(manager: ExperimentManager) -> str:
    """Describes an experiment without building or writing anything.

    Args:
        manager: The experiment.

    Returns:
        YAML: the run's place, the resolved hyperparameters, the envs from the inside out, and the files.
    """
    resolved = manager.hyperparams
    content = {
        "experiment": {
            "algo": manager.algo,
            "env": manager.env_id,
            "seed": manager.seed,
            "n_timesteps": resolved.n_timesteps,
            "device": str(manager.device),
            **({} if manager.devices == 1 else {"learners": manager.devices}),
            "resume": None if manager.checkpoint is None else str(manager.checkpoint),
        },
        "model": {"class": resolved.algo_class, "policy": resolved.policy, **resolved.model_kwargs},
        "envs": {"training": manager.n_envs, "evaluation": _evaluation(manager), "stack": _stack(manager)},
        "hyperparameters": manager.saved_hyperparams,
        "writes": _writes(manager),
    }
    return yaml.safe_dump(to_plain(content), sort_keys=False, allow_unicode=True, width=120).rstrip()


def _evaluation(manager: ExperimentManager) -> str:
    if manager.eval_freq < 1:
        return "none"
    where = ", in a Ray actor while training goes on" if manager.async_eval else ""
    return f"{manager.n_eval_envs} envs, {manager.n_eval_episodes} episodes every {manager.eval_freq} env steps{where}"


def _stack(manager: ExperimentManager) -> list[str]:
    resolved = manager.hyperparams
    noise = [] if resolved.noise is None else [f"action noise {resolved.noise.kind}, std {resolved.noise.std}"]
    normalize = [] if resolved.normalize is None else [_call("VecNormalize", resolved.normalize)]
    frames = [] if resolved.frame_stack is None else [f"VecFrameStack({resolved.frame_stack})"]
    return [
        _call(manager.env_id, manager.get_env_kwargs()),
        _call("Monitor", resolved.monitor_kwargs),
        *(_call(wrapper.__name__, arguments) for wrapper, arguments in resolved.env_wrappers),
        named(manager),
        *(_call(wrapper.__name__, arguments) for wrapper, arguments in resolved.vec_env_wrappers),
        *normalize,
        *frames,
        *noise,
    ]


def _writes(manager: ExperimentManager) -> list[str]:
    name = env_folder_name(manager.env_id)
    if manager.optimize_hyperparameters:
        home = f"{manager.log_folder}/{algo_folder_name(manager.algo)}"
        parts = ("study.yml", "study.log", "trials/", "output/", "report.html", "best.yml")
        files = [f"{home}/{name}_study_<next number>/{part}" for part in parts]
        return [*files, f"{home}/report_{name}_<study>_<time>.csv"]
    if manager.checkpoint is not None:
        folder = manager.save_path
    else:
        folder = f"{manager.log_folder}/{algo_folder_name(manager.algo)}/{name}_<next number>{manager.uuid_str}"
    files = [f"{name}.zip", "metrics.csv", "provenance.yml", "<i>.monitor.csv"]
    files += [f"{name}/{file}" for file in ("config.yml", "args.yml", "command.txt")]
    if manager.eval_freq > 0:
        files += ["evaluations.npz", "best_model.zip"]
    if manager.save_freq > 0:
        files.append("rl_model_<steps>_steps.zip")
    if manager.keep_checkpoints > 0:
        files.append("checkpoints/<steps>/")
    return [f"{folder}/{file}" for file in files]


def _call(name: str, arguments: Any) -> str:
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in dict(arguments).items())})" if arguments else name
