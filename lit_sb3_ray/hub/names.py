"""What repositories and the files in them are called: as rl_zoo3 has it, so that each reads what the other has pushed."""

from __future__ import annotations

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.experiment.locate import algo_folder_name, env_folder_name

CONFIG, ARGUMENTS, ENV_KWARGS = "config.yml", "args.yml", "env_kwargs.yml"
STATISTICS = "vec_normalize.pkl"
METRICS = "train_eval_metrics.zip"
RESULTS, REPLAY, CARD = "results.json", "replay.mp4", "README.md"

SETTINGS = (CONFIG, ARGUMENTS, ENV_KWARGS)
"""The YAML files."""


def model_name(algo: str, env_id: str) -> str:
    """Gives the name of a model, which is its repository's by default, and its file's.

    Args:
        algo: The algorithm's name.
        env_id: The environment's id.

    Returns:
        Such as `ppo-CartPole-v1`.
    """
    return f"{algo_folder_name(algo)}-{env_folder_name(env_id)}"


def repository(organization: str, algo: str, env_id: str, repo_name: str | None = None) -> str:
    """Gives a repository's id.

    Args:
        organization: The user or organization it belongs to.
        algo: The algorithm's name.
        env_id: The environment's id.
        repo_name: Its name; None for that of the model.

    Returns:
        Such as `sb3/ppo-CartPole-v1`.

    Raises:
        ConfigError: There is a slash in either part, or nothing.
    """
    name = model_name(algo, env_id) if repo_name is None else repo_name
    for part, flag in ((organization, "--organization"), (name, "--repo-name")):
        if not part or "/" in part:
            raise ConfigError(f"{flag} {part!r}: a repository is <organization>/<name>, and this is one of the two")
    return f"{organization}/{name}"
