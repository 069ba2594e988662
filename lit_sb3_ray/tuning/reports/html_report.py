"""The report to read: one HTML file without scripts, which refers to nothing outside itself."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from optuna.trial import TrialState

from lit_sb3_ray import __version__
from lit_sb3_ray.config.numerals import to_number
from lit_sb3_ray.tuning.reports.charts import Chart, Figure
from lit_sb3_ray.tuning.reports.earlier import extent_note
from lit_sb3_ray.tuning.reports.record import (
    StudyRecord,
    best_first,
    by_merit,
    count_states,
    is_drawable,
    last_of,
    prunes,
    value_of,
    whole_numbers,
)
from lit_sb3_ray.tuning.reports.svg import draw
from lit_sb3_ray.tuning.reports.wording import count, cut, pairs
from lit_sb3_ray.tuning.rows import FAILURE, JUMPED, SPREAD, TIMESTEPS, TRACEBACK, trained

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

ROWS, COLUMNS, TABLE_SIZE = 1000, 40, 1_500_000
FAILURES, TRACEBACKS, TRACEBACK_LINES = 200, 10, 40
_CELL, _LINE = 40, 300

_STYLE = """
:root { color-scheme: light dark }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1080px; margin: 2em auto; padding: 0 1em }
h1 { font-size: 1.5em; overflow-wrap: anywhere } h2 { font-size: 1.15em; margin-top: 2em }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .87em }
th, td { text-align: left; vertical-align: top; padding: .2em .8em .2em 0; border-bottom: 1px solid #8884 }
td { overflow-wrap: anywhere } .wide { overflow-x: auto; max-height: 75vh } .wide td, .wide th { white-space: nowrap }
thead th { position: sticky; top: 0; background: Canvas }
pre { background: #8882; padding: .8em; overflow-x: auto; font-size: .87em }
figure { margin: 0 } .panels { display: flex; flex-wrap: wrap; gap: .5em 1em } svg { width: 100%; height: auto }
.note { color: #777; font-size: .87em }
"""
# Nothing may be loaded and nothing may run, whatever stands in a study.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def page(study: StudyRecord, figures: Sequence[Figure], best: str) -> str:
    """Writes the report.

    Args:
        study: The study, with any number of trials of any state.
        figures: Its figures; none to leave them out.
        best: The best trial as a hyperparameter file; empty when there is none.

    Returns:
        The page, smaller than 5 MB: of very many trials, figures and tables show some and say so.
    """
    sections = [
        _summary(study),
        _best(study, best),
        *map(_figure, figures),
        _failures(study),
        _jumped(study),
        _trials(study),
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n{extent_note(study)}\n'
        f"<title>{_text(study.name, 120)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{_text(study.name, 200)}</h1>\n{''.join(filter(None, sections))}</body>\n</html>\n"
    )


def _summary(study: StudyRecord) -> str:
    states = count_states(study.trials)
    told = [
        ("algorithm", study.algo),
        ("env", study.env_id),
        ("env steps a trial", None if study.budget is None else f"{study.budget:,}"),
        *((key, study.attributes.get(key)) for key in ("objective", "sampler", "pruner", "command")),
        (
            "trials",
            f"{len(study.trials):,}"
            + (f" ({', '.join(f'{many:,} {state}' for state, many in states.items())})" if states else ""),
        ),
        ("env steps in all", _total_steps(study)),
        ("from, to", _times(study.trials)),
    ]
    rows = "".join(f"<tr><th>{key}</th><td>{_text(value, _LINE)}</td></tr>\n" for key, value in told if value is not None)
    several = f" Of its {study.objectives} values the first counts here." if study.objectives > 1 else ""
    made = f"By lit-sb3-ray {__version__}, {datetime.now():%Y-%m-%d %H:%M}.{several}"
    return f'<table>\n{rows}</table>\n<p class="note">{made}</p>\n'


def _total_steps(study: StudyRecord) -> str | None:
    steps = [number for trial in study.trials if is_drawable(number := to_number(trial.user_attrs.get(TIMESTEPS)))]
    return f"{int(sum(filter(None, steps))):,}" if steps else None


def _times(trials: Iterable[FrozenTrial]) -> str | None:
    moments = [moment for trial in trials for moment in (trial.datetime_start, trial.datetime_complete) if moment is not None]
    return f"{min(moments):%Y-%m-%d %H:%M:%S}, {max(moments):%Y-%m-%d %H:%M:%S}" if moments else None


def _best(study: StudyRecord, best: str) -> str:
    ranked = best_first(study)
    if not ranked:
        return _section("Best trial", _note("No trial is complete with a finite value."))
    first = ranked[0]
    rows = [[name, value] for name, value in sorted(trained(first).items())]
    body = f"<p>Trial {first.number}: <strong>{_text(value_of(first), _CELL)}</strong></p>\n"
    body += _table(["parameter", "value"], ([cut(name, 80), cut(value, 200)] for name, value in rows[:ROWS])) if rows else ""
    if best:
        body += f"<details open><summary>best.yml</summary>{_code(best.splitlines()[:ROWS])}</details>\n"
    return _section("Best trial", body)


def _figure(figure: Figure) -> str:
    single = len(figure.panels) == 1
    width, height = (1000, 400) if single else (330, 240)
    drawn = (
        f'<div style="flex:1 1 {min(width, 330)}px;max-width:{width}px">{draw(panel, width, height)}</div>\n'
        for panel in figure.panels
    )
    notes = [figure.note] if figure.note else []
    if single and isinstance(figure.panels[0], Chart):
        notes.append("Rest the pointer on a point or the end of a curve to see its trial.")
    return _section(figure.title, f'<figure class="panels">\n{"".join(drawn)}</figure>\n{_note(" ".join(notes))}')


def _failures(study: StudyRecord) -> str:
    failed = [trial for trial in study.trials if trial.state == TrialState.FAIL]
    if not failed:
        return ""
    rows: list[str] = []
    told: set[str] = set()
    for trial in failed[:FAILURES]:
        error = cut(trial.user_attrs.get(FAILURE) or "no error is recorded: it was broken off", _LINE)
        full = trial.user_attrs.get(TRACEBACK)
        detail = ""
        if isinstance(full, str) and error not in told and len(told) < TRACEBACKS:
            told.add(error)
            detail = f"<details><summary>traceback</summary>{_code(full.splitlines()[-TRACEBACK_LINES:])}</details>"
        drawn = html.escape(pairs(trained(trial), _LINE))
        rows.append(f"<tr><td>{trial.number}</td><td>{html.escape(error)}{detail}</td><td>{drawn}</td></tr>\n")
    more = _note(f"And {len(failed) - FAILURES:,} more, in the CSV.") if len(failed) > FAILURES else ""
    return _section(
        f"Failures ({len(failed):,})",
        f"<table><thead><tr><th>trial</th><th>error</th><th>parameters</th></tr></thead>\n{''.join(rows)}</table>\n{more}",
    )


def _jumped(study: StudyRecord) -> str:
    marks = Counter(mark for trial in study.trials for mark in set(whole_numbers(trial.user_attrs.get(JUMPED))))
    if not marks:
        return ""
    trials = sum(bool(whole_numbers(trial.user_attrs.get(JUMPED))) for trial in study.trials)
    told = f"{count(trials, 'trial')} had rollouts longer than the time between two evaluations"
    if prunes(study):
        told += (
            ", and could not be pruned at these: fewer evaluations, or a bound on n_steps times n_envs, let the pruner see "
            "every trial"
        )
    note = _note(f"{told}.")
    rows = ([f"{mark:,}", f"{many:,}"] for mark, many in sorted(marks.items())[:ROWS])
    return _section("Evaluations that were stepped over", _table(["env steps", "trials"], rows) + note)


def _trials(study: StudyRecord) -> str:
    if not study.trials:
        return _section("Trials", _note("There are none yet."))
    names = list(dict.fromkeys(name for trial in study.trials for name in trained(trial)))
    shown = names[:COLUMNS]
    header = ["trial", "state", "value", "spread", "env steps", "seconds", *(cut(name, _CELL) for name in shown)]
    ranked = by_merit(study)
    rows = list(
        _fitting([*_facts(trial), *(cut(trained(trial).get(name, ""), _CELL) for name in shown)] for trial in ranked[:ROWS])
    )
    left_out = []
    if len(ranked) > len(rows):
        left_out.append(f"the best {len(rows):,} of {len(ranked):,} trials")
    if len(names) > COLUMNS:
        left_out.append(f"{COLUMNS} of {len(names)} parameters")
    note = "The best first. The value of a trial that is not complete is its last one."
    note += f" Shown are {' and '.join(left_out)}; the CSV has all." if left_out else ""
    return _section("Trials", f'<div class="wide">{_table(header, rows)}</div>\n{_note(note)}')


def _fitting(rows: Iterable[list[str]]) -> Iterator[list[str]]:
    """The first rows, as many as the page has room for."""
    size = 0
    for row in rows:
        size += sum(len(html.escape(cell)) + len("<td></td>") for cell in row)
        if size > TABLE_SIZE:
            return
        yield row


def _facts(trial: FrozenTrial) -> list[str]:
    """The columns of a trial that are not parameters."""
    value = last_of(trial) if not trial.values else trial.values[0]
    spread = trial.user_attrs.get(SPREAD)
    steps = to_number(trial.user_attrs.get(TIMESTEPS))
    if steps is None and trial.intermediate_values:
        steps = max(trial.intermediate_values)
    return [
        str(trial.number),
        trial.state.name,
        "" if value is None else cut(value, _CELL),
        f"{spread:.4g}" if is_drawable(spread) else "",
        "" if steps is None or not is_drawable(steps) else f"{int(steps):,}",
        "" if trial.duration is None else f"{trial.duration.total_seconds():.1f}",
    ]


def _section(title: str, body: str) -> str:
    return f"<h2>{_text(title, 80)}</h2>\n{body}"


def _table(header: Iterable[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{html.escape(name)}</th>" for name in header)
    body = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>\n" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table>\n"


def _note(text: str) -> str:
    return f'<p class="note">{_text(text, 1000)}</p>\n'


def _text(value: Any, width: int) -> str:
    return html.escape(cut(value, width))


def _code(lines: Iterable[str]) -> str:
    """Lines as they stand, with their indentation."""
    shown = ("".join(char if char.isprintable() else " " for char in line[:200]) for line in lines)
    return f"<pre>{html.escape(chr(10).join(shown))}</pre>"
