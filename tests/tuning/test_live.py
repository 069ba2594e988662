"""The table of a running study, on a terminal and off it."""

import io
import logging
import math
from types import SimpleNamespace

from rich.console import Console

from lit_sb3_ray.tuning.live import COLUMNS, SHOWN_ROWS, LiveTable
from lit_sb3_ray.tuning.rows import FAILURE
from lit_sb3_ray.tuning.trainable import DRAWN, FINISHED, METRIC, NUMBER


def trial(number, **params):
    """What the table looks at in a trial of Ray Tune."""
    return SimpleNamespace(trial_id=f"id{number}", config={NUMBER: number, DRAWN: params})


def result(steps, value, done=False, finished=False):
    return {"timesteps_total": steps, METRIC: value, "steps_per_second": 1234.5, "done": done, FINISHED: finished}


def shown(table, width=120):
    console = Console(file=io.StringIO(), width=width)
    console.print(table.table())
    return console.file.getvalue().splitlines()


def filled():
    table = LiveTable(9, None)
    for number, last in enumerate((3.0, 2.0, 1.0, math.nan)):
        table.changed(trial(number, learning_rate=0.00012345, net_arch="small"), "RUNNING")
        if number < 3:
            table.reported(trial(number), result(1000, 5.0))
            table.reported(trial(number), result(2000, last, done=number < 2, finished=number == 0))
        else:
            table.reported(trial(number), {METRIC: last, FAILURE: "ValueError: broken", "done": True})
    return table


def test_each_trial_is_a_line_those_at_work_first():
    title, head, *lines = shown(filled())
    assert title.strip() == "9 trials: 1 complete, 1 pruned, 1 running, 1 fail"
    assert [word for word in head.split("  ") if word.strip()] and all(column in head for column in COLUMNS)
    assert [line.split()[:2] for line in lines] == [["2", "RUNNING"], ["3", "FAIL"], ["1", "PRUNED"], ["0", "COMPLETE"]]
    assert lines[0].split()[2:6] == ["2,000", "1.00", "5.00", "1,234"]
    assert lines[1].split()[2:6] == ["0", "-", "-", "0"]
    assert "learning_rate=0.000123, net_arch=small" in lines[0]


def test_a_trial_goes_on_in_its_line_after_its_process_was_lost():
    table = filled()
    table.changed(trial(2), "RUNNING")
    assert len(table.lines) == 4
    assert table.lines["id2"].last == 1.0


def test_the_table_stays_on_the_screen():
    table = LiveTable(1000, None)
    for number in range(200):
        table.changed(trial(number), "RUNNING")
    assert len(shown(table)) == SHOWN_ROWS + 2
    assert shown(table, 40)


def test_on_a_terminal_it_is_drawn_in_place(caplog):
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    with caplog.at_level(logging.INFO), LiveTable(2, console) as table:
        table.changed(trial(0), "RUNNING")
        table.reported(trial(0), result(500, 7.0))
    assert "2 trials: 1 running" in console.file.getvalue()
    assert "7.00" in console.file.getvalue()
    assert caplog.text == ""


def test_elsewhere_each_event_is_a_line_of_the_log(caplog):
    with caplog.at_level(logging.INFO), LiveTable(2, Console(file=io.StringIO())) as table:
        table.changed(trial(0, gamma=0.99), "RUNNING")
        table.reported(trial(0), result(500, 7.0, done=True, finished=True))
    assert [record.getMessage() for record in caplog.records] == [
        "Trial 0 RUNNING: gamma=0.99",
        "Trial 0 COMPLETE: 500 env steps, last 7.00, best 7.00, 1,234 steps/s",
    ]
