"""Training as a trial of a study did: the settings that such a run takes over from the study."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lit_sb3_ray.experiment.arguments import FROM_STUDY
from lit_sb3_ray.scale.process import threads_of
from lit_sb3_ray.tuning.rows import SEED

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial


def replay_settings(saved: Mapping[str, Any], row: FrozenTrial) -> dict[str, Any]:
    """Finds the settings of a run that trains as a trial did, bit for bit.

    Args:
        saved: The settings that the study was begun with.
        row: The trial.

    Returns:
        Settings of `train` by name: the study's algorithm, env, budget and evaluation, the trial's seed and number; and the
        device and threads that the trial had, which are not those that a run by itself would choose.
    """
    kept = {key: value for key, value in saved.items() if key in FROM_STUDY}
    if kept.get("device", "auto") == "auto" and not saved.get("gpus_per_trial"):
        kept["device"] = "cpu"
    threads = saved.get("num_threads", -1)
    kept["num_threads"] = threads if threads > 0 else threads_of(saved.get("cpus_per_trial", 1.0))
    return {**kept, "seed": row.user_attrs.get(SEED, saved.get("seed", -1)), "trial_id": row.number}
