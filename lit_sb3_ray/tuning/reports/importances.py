"""Which parameters decide whether a trial is a good one."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from lit_sb3_ray.config.problems import reason
from lit_sb3_ray.tuning.reports.record import StudyRecord, best_first, true_params, value_of
from lit_sb3_ray.tuning.storage import open_study

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

FEWEST = 5
"""Complete trials from which on importances say anything."""


def importances(study: StudyRecord) -> tuple[dict[str, float], str]:
    """Computes the share of each parameter in what makes a trial one of the best.

    PED-ANOVA is used, whatever is installed: unlike fANOVA it needs no scikit-learn, and it asks what leads to the top tenth.

    Args:
        study: The study. Complete trials with a finite value count.

    Returns:
        Share by parameter, the largest first, in all 1; and why there are none, if so.
    """
    from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances
    from optuna.trial import create_trial

    # The row of a warm start may have another point than what was trained.
    trials = [trial for trial in best_first(study) if true_params(trial) == trial.params]
    if len(trials) < FEWEST:
        return {}, f"Importances need at least {FEWEST} complete trials; there are {len(trials)}."
    varied = _varied(trials)
    if not varied:
        return {}, "No parameter differs between the complete trials."
    sign = 1.0 if study.maximize else -1.0
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # The method is marked experimental, and says so each time.
            copy = open_study(None, None)
            copy.add_trials(
                create_trial(params=trial.params, distributions=trial.distributions, value=sign * (value_of(trial) or 0.0))
                for trial in trials
            )
            found = get_param_importances(copy, evaluator=PedAnovaImportanceEvaluator(), normalize=False)
    except Exception as error:  # What the evaluator raises for a space that it cannot handle is not documented.
        return {}, f"Importances cannot be computed: {reason(error)}"
    kept = {name: share for name, share in found.items() if name in varied and share > 0}
    total = sum(kept.values())
    if not total:
        return {}, "No parameter stands out."
    return {name: share / total for name, share in sorted(kept.items(), key=lambda item: -item[1])}, ""


def _varied(trials: list[FrozenTrial]) -> set[str]:
    """The parameters that are not the same in all trials."""
    seen: dict[str, set[str]] = {}
    for trial in trials:
        for name, value in trial.params.items():
            seen.setdefault(name, set()).add(str(value))
    return {name for name, values in seen.items() if len(values) > 1}
