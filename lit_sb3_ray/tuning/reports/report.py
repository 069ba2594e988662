"""What a study leaves: rl_zoo3's table of trials, the best trial as a hyperparameter file, a page, and figures."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from lit_sb3_ray.config.hyperparams import merge
from lit_sb3_ray.config.problems import MissingPackageError, require_matplotlib
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.experiment.locate import env_folder_name
from lit_sb3_ray.experiment.run_folder import replace_file
from lit_sb3_ray.tuning.reports.best import as_file, best_trials
from lit_sb3_ray.tuning.reports.earlier import check_not_shorter
from lit_sb3_ray.tuning.reports.figures import build_figures
from lit_sb3_ray.tuning.reports.html_report import page
from lit_sb3_ray.tuning.reports.png import write_png
from lit_sb3_ray.tuning.reports.record import StudyRecord, record, true_params
from lit_sb3_ray.tuning.rows import trained

if TYPE_CHECKING:
    from optuna import Study

    from lit_sb3_ray.experiment.manager import ExperimentManager
    from lit_sb3_ray.tuning.reports.charts import Figure

logger = logging.getLogger(__name__)

BEST, PAGE, FIGURES = "best.yml", "report.html", "figures"

T = TypeVar("T")


@dataclass(frozen=True)
class ReportFiles:
    """The files of a report.

    Attributes:
        table: One row a trial, as CSV; None when it could not be written.
        best: The best trial as a file for `--conf-file`; None when no trial is complete.
        page: The report to read, one file that refers to nothing else; None when it could not be written.
        figures: The page's figures as PNG files; empty without matplotlib, and for `no_optim_plots`.
        problems: What went wrong, a line each.
    """

    table: Path | None = None
    best: Path | None = None
    page: Path | None = None
    figures: tuple[Path, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def paths(self) -> list[Path]:
        """All files there are."""
        return [path for path in (self.table, self.best, self.page, *self.figures) if path is not None]


def write_reports(
    study: Study, folder: str | Path, *, no_optim_plots: bool = False, tables: Path | None = None
) -> ReportFiles:
    """Writes all reports of a study, whatever its state; files of an earlier report are replaced.

    A part that cannot be written is left out and told in `problems`: at the end of a study the others matter all the more.

    Args:
        study: The study, of this package or any other.
        folder: Where the files go; it is made.
        no_optim_plots: Leave the figures out.
        tables: The folder of the CSV; None for `folder`.

    Returns:
        The files.

    Raises:
        ConfigError: The study is shorter than the report that is there says; nothing has been written.
    """
    folder = Path(folder)
    parts = _Parts()
    seen = parts.try_to("read the study", lambda: record(study))
    if seen is not None:
        check_not_shorter(seen, folder / PAGE)
    if seen is None or parts.try_to("make its folder", lambda: _make(folder)) is None:
        return ReportFiles(problems=tuple(parts.problems))
    path = (folder if tables is None else tables) / table_name(seen)
    written = parts.try_to("write the table", lambda: write_table(study, path))
    text = parts.try_to("make an entry of the best trial", lambda: _best_text(seen)) or ""
    best = parts.try_to("write the best trial", lambda: _write(folder / BEST, text)) if text else None
    figures = (parts.try_to("draw figures", lambda: build_figures(seen)) or []) if not no_optim_plots else []
    html = parts.try_to("write the page", lambda: _write(folder / PAGE, page(seen, figures, text)))
    drawn = _draw(parts, figures, folder / FIGURES)
    return ReportFiles(written, best, html, drawn, tuple(parts.problems))


def table_name(study: StudyRecord) -> str:
    """Names a study's table as rl_zoo3 does; its time is when the last trial ended: a report again is no new file."""
    ended = [trial.datetime_complete for trial in study.trials if trial.datetime_complete is not None]
    when = int(max(ended).timestamp() if ended else time.time())
    env = env_folder_name(study.env_id) if study.env_id else study.name
    parts = [study.budget, study.attributes.get("sampler"), study.attributes.get("pruner")]
    total = study.attributes.get("total")
    trials = total if isinstance(total, int) else len(study.trials)
    what = f"{trials}-trials-{'-'.join('unknown' if part is None else str(part) for part in parts)}"
    return re.sub(r"[^\w.+-]", "-", f"report_{env}_{what}_{when}")[:200] + ".csv"


def write_table(study: Study, path: Path) -> Path:
    """Writes the table of a study's trials.

    Args:
        study: The study.
        path: The CSV file; its folder is made.

    Returns:
        The file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    trials_table(study).to_csv(path)
    return path


def trials_table(study: Study) -> Any:
    """Makes one row a trial: number, value, times, parameters, user attributes, state; as a `pandas.DataFrame`.

    A warm start's parameters are those that it has trained with, which its row in the study need not have.
    """
    table = study.trials_dataframe()
    for trial in study.get_trials(deepcopy=False):
        values = trained(trial)
        for name in trial.params.keys() - true_params(trial).keys():
            column = f"params_{name}"
            table[column] = table[column].astype(object)
            table.loc[table["number"] == trial.number, column] = values.get(name)
    return table


def best_entry(manager: ExperimentManager, hyperparams: dict[str, Any]) -> dict[str, Any]:
    """Makes the entry of a hyperparameter file that trains as a trial did.

    Args:
        manager: The study's manager.
        hyperparams: The trial's hyperparameters.

    Returns:
        The file's hyperparameters, over them the trial's, over both those given; `n_timesteps` and `n_envs` are the study's.
    """
    merged = merge(manager.entry(), hyperparams, manager.custom_hyperparams)
    return {**merged, "n_timesteps": manager.hyperparams.n_timesteps, "n_envs": manager.n_envs}


class _Parts:
    """The parts of a report, each tried by itself."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    def try_to(self, what: str, do: Callable[[], T]) -> T | None:
        """Does one part; what goes wrong is noted and logged, and the others are made all the same."""
        try:
            return do()
        except Exception as error:  # Rows may hold anything that another system has written there.
            problem = f"cannot {what}: {type(error).__name__}: {' '.join(str(error).split())}"
            self.problems.append(problem)
            logger.warning("The report is not whole: %s", problem, exc_info=logger.isEnabledFor(logging.DEBUG))
            return None


def _make(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _write(path: Path, text: str) -> Path:
    replace_file(path, lambda file: file.write_text(text, encoding="utf-8", errors="replace"))
    return path


def _best_text(study: StudyRecord) -> str:
    try:
        return as_file(best_trials(study, 1))
    except ConfigError as error:
        logger.info("No %s: %s", BEST, error)
        return ""


def _draw(parts: _Parts, figures: Sequence[Figure], folder: Path) -> tuple[Path, ...]:
    wanted = [figure for figure in figures if figure.panels]
    if not wanted:
        return ()
    try:
        require_matplotlib()
    except MissingPackageError as error:
        logger.info("The page has the figures; %s", error)
        return ()
    if parts.try_to("make the figures' folder", lambda: _make(folder)) is None:
        return ()
    drawn = [parts.try_to(f"draw {figure.name}", partial(write_png, figure, folder)) for figure in wanted]
    return tuple(path for path in drawn if path is not None)
