"""The table as Markdown, which can be read back as published figures, and as CSV."""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from pathlib import Path

import pytest

from lit_sb3_ray.benchmarking.published import Published, read_published
from lit_sb3_ray.benchmarking.runs import Run
from lit_sb3_ray.benchmarking.scoring import Rules, Score
from lit_sb3_ray.benchmarking.table import CSV_COLUMNS, Row, markdown, short_steps, write_table

PLAYED = Row(
    Run(Path("logs/ppo/Hopper-v5_1"), "ppo", "Hopper-v5"),
    Score(2400.12345, 10.5, 1_001_472, 149_987, 150),
    None,
    Published("ppo", "Hopper-v3", 2410.4, 10.0, 1_000_000),
)
SAME = Row(
    Run(Path("logs/dqn/CartPole-v1_2"), "dqn", "CartPole-v1"),
    Score(500.0, 0.0, 50_000, 150_000, 300),
    None,
    Published("dqn", "CartPole-v1", 500.0, None, 50_000),
)
DAMAGED = Row(
    Run(Path("logs/ppo/Hopper-v5_2"), "ppo", "Hopper-v5"), None, "no | model", Published("ppo", "Hopper-v5", 1.0, 0.5, 500)
)


@pytest.mark.parametrize(
    ("steps", "text"), [(999, "999"), (1000, "1k"), (20_480, "20k"), (500_000, "500k"), (1_001_472, "1M"), (10**7, "10M")]
)
def test_steps_are_written_short(steps, text):
    assert short_steps(steps) == text


def test_the_table_as_markdown():
    assert markdown([PLAYED, SAME]).splitlines() == [
        "| algo | env_id      | mean_reward | std_reward | n_timesteps | eval_timesteps | eval_episodes "
        "| published                     | run           |",
        "| ---- | ----------- | ----------: | ---------: | ----------- | -------------: | ------------: "
        "| ----------------------------- | ------------- |",
        "| ppo  | Hopper-v5   |    2400.123 |     10.500 | 1M          |         149987 |           150 "
        "| 2410.400 ± 10.000 (Hopper-v3) | Hopper-v5_1   |",
        "| dqn  | CartPole-v1 |     500.000 |      0.000 | 50k         |         150000 |           300 "
        "| 500.000                       | CartPole-v1_2 |",
    ]


def test_a_run_that_could_not_be_played_has_a_row_with_the_reason():
    lines = [[cell.strip() for cell in line.split(" | ")] for line in markdown([SAME, DAMAGED]).splitlines()]
    assert re.fullmatch(r"problem +\|", lines[0][-1])
    assert lines[2][-1] == "|"
    assert lines[3][-1] == "no \\| model |"
    assert lines[3][2:7] == [""] * 5
    assert lines[3][7] == "1.000 ± 0.500 (500)"


def test_both_files_are_written_and_can_be_read_back(tmp_path):
    paths = write_table(tmp_path / "b", [PLAYED, SAME, DAMAGED], Rules(1000, 2, 3))
    assert [path.name for path in paths] == ["benchmark.md", "benchmark.csv"]
    assert sorted(path.name for path in (tmp_path / "b").iterdir()) == ["benchmark.csv", "benchmark.md"]
    text = paths[0].read_text()
    assert "played for 1,000 steps in 2 environments each (seed 3)" in text
    assert read_published(paths[0]) == [
        Published("ppo", "Hopper-v5", 2400.123, 10.5, 1_000_000),
        Published("dqn", "CartPole-v1", 500.0, 0.0, 50_000),
    ]
    with paths[1].open(newline="") as file:
        reader = csv.DictReader(file)
        rows = list(reader)
    assert tuple(reader.fieldnames) == CSV_COLUMNS
    assert float(rows[0]["mean_reward"]) == 2400.12345
    assert rows[0]["n_timesteps"] == "1001472"
    assert (rows[0]["published_env_id"], rows[0]["published_std_reward"]) == ("Hopper-v3", "10.0")
    assert (rows[1]["published_std_reward"], rows[1]["run"]) == ("", "logs/dqn/CartPole-v1_2")
    assert (rows[2]["mean_reward"], rows[2]["problem"]) == ("", "no | model")
    assert read_published(paths[1])[1] == Published("dqn", "CartPole-v1", 500.0, 0.0, 50_000)


def test_names_do_not_end_their_cells_or_lines():
    odd = replace(SAME, run=Run(Path("logs/ppo/a|b\nc_1"), "p|o", "a|b\nc"))
    lines = markdown([odd]).splitlines()
    assert len(lines) == 3
    cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", lines[2])]
    assert (cells[1], cells[2], cells[9]) == ("p\\|o", "a\\|b c", "a\\|b c_1")
