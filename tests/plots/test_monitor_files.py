"""Monitor files: read as SB3 reads them, and what is damaged is told while the rest is read."""

import logging

import numpy as np
import pytest
from plotted_runs import rising_episodes, write_monitor
from stable_baselines3.common.monitor import load_results

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.plots.monitor_files import read_episodes


def test_several_files_are_put_in_the_order_of_time_as_by_sb3(tmp_path):
    generator = np.random.default_rng(0)
    for index in range(3):
        times = np.cumsum(generator.random(40))
        rows = [(float(generator.normal()), int(generator.integers(1, 99)), round(float(t), 6)) for t in times]
        write_monitor(tmp_path, rows, index, t_start=1000.0 + 3.25 * index)
    theirs, ours = load_results(str(tmp_path)), read_episodes(tmp_path)
    assert len(ours) == 120
    np.testing.assert_array_equal(ours.returns, theirs.r)
    np.testing.assert_array_equal(ours.lengths, theirs.l)
    np.testing.assert_allclose(ours.seconds, theirs.t, rtol=0, atol=1e-6)
    assert ours.successes is None


def test_success_is_a_column_that_all_files_have(tmp_path):
    write_monitor(tmp_path, [(1, 2, 0.1, True), (1, 2, 0.3, False)], 0, keywords=("is_success",))
    write_monitor(tmp_path, [(1, 2, 0.2, 1.0)], 1, keywords=("is_success",))
    assert read_episodes(tmp_path).successes.tolist() == [1.0, 1.0, 0.0]
    write_monitor(tmp_path, [(1, 2, 0.4)], 2)
    assert read_episodes(tmp_path).successes is None


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "it is empty"),
        ("r,l,t\n1,2,3\n", "first line is not that of a monitor file"),
        ('#{"env_id": "x"}\nr,l,t\n', "first line is not that of a monitor file"),
        ('#{"t_start": 1}\nr,t\n1,2\n', "no column l"),
        ('#{"t_start": 1}\n', "no column r, l, t"),
        (b"\x00\xff\xfe\x80", "first line is not that of a monitor file"),
        ("#" + "[" * 100_000 + "\nr,l,t\n", "first line is not that of a monitor file"),
        ('#{"t_start": NaN}\nr,l,t\n1,2,3\n', "its t_start is nan"),
        ('#{"t_start": 1}\nr,l,t\n1,2\n', "line 3 is no episode's"),
    ],
)
def test_a_file_that_is_none_is_told_and_the_others_are_read(content, told, tmp_path, caplog):
    write_monitor(tmp_path, rising_episodes(4))
    (tmp_path / "1.monitor.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    with caplog.at_level(logging.WARNING):
        assert read_episodes(tmp_path).returns.tolist() == [0, 1, 2, 3]
    assert [record.message for record in caplog.records if told in record.message and "1.monitor.csv" in record.message]


def test_where_no_file_is_sound_it_is_one_line(tmp_path, caplog):
    for index in range(2):
        (tmp_path / f"{index}.monitor.csv").write_text("")
    with pytest.raises(ConfigError, match=r"0\.monitor\.csv is damaged: it is empty$"):
        read_episodes(tmp_path)
    assert caplog.messages == []


@pytest.mark.parametrize("damage", ["7,1", "7,1,x\n8,1,5\n", "7,1,2,3\n", "\x00\x00\x00\n"])
def test_what_stands_before_a_damaged_row_is_read(damage, tmp_path, caplog):
    path = write_monitor(tmp_path, rising_episodes(4))
    with path.open("a") as file:
        file.write(damage)
    with caplog.at_level(logging.WARNING):
        assert len(read_episodes(tmp_path)) == 4
    assert "0.monitor.csv is damaged at line 7" in caplog.text


def test_nothing_to_read_is_one_line(tmp_path):
    with pytest.raises(ConfigError, match="has no monitor file"):
        read_episodes(tmp_path)
    write_monitor(tmp_path, [])
    with pytest.raises(ConfigError, match="no finished episode"):
        read_episodes(tmp_path)
