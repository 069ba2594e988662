"""The rows of a study that other processes work on."""

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.tuning.storage import load_study


def rows_of(journal, name):
    """Reads a study's rows; none if nobody has begun it yet."""
    try:
        return load_study(str(journal), name).trials
    except ConfigError:
        return []


def evaluated(journal, name):
    """Tells whether a trial of it has reported."""
    return any(row.intermediate_values for row in rows_of(journal, name))
