"""The rows of a study that other processes work on."""

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.tuning.rows import CHECKPOINT
from lit_sb3_ray.tuning.storage import load_study


def rows_of(journal, name):
    """Reads a study's rows; none if nobody has begun it yet."""
    try:
        return load_study(str(journal), name).trials
    except ConfigError:
        return []


def saved(journal, name):
    """Lists the env steps of each trial's last checkpoint, for those that have one."""
    return [row.user_attrs[CHECKPOINT]["mark"] for row in rows_of(journal, name) if CHECKPOINT in row.user_attrs]
