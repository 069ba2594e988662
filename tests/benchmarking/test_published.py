"""Published figures: those that come with the package, files of others, and which one belongs to a run."""

from __future__ import annotations

from collections import Counter

import pytest

from lit_sb3_ray.benchmarking.published import PACKAGED, Published, find_published, read_published
from lit_sb3_ray.errors import ConfigError

TABLE = """
## Some words | and a bar

|algo |  env_id   |mean_reward|std_reward|n_timesteps|eval_timesteps|
|-----|-----------|----------:|---------:|-----------|-------------:|
|a2c  |Acrobot-v1 |    -83.353|    17.213|500k       |        149979|
|ppo  |Hopper-v3  |   2410.435|          |1M         |        150000|
|ppo  |Empty-v0   |           |          |           |              |

|algo|other|
|----|-----|
|x   |y    |
"""


def test_the_packaged_figures_are_all_there():
    figures = read_published(PACKAGED)
    assert len(figures) == len({(figure.algo, figure.env_id) for figure in figures}) == 199
    assert len({figure.env_id for figure in figures}) == 55
    counts = Counter(figure.algo for figure in figures)
    assert set(counts) == {"a2c", "ars", "ddpg", "dqn", "ppo", "ppo_lstm", "qrdqn", "sac", "td3", "tqc", "trpo"}
    found = {(figure.algo, figure.env_id): figure for figure in figures}
    assert found["sac", "Pendulum-v1"] == Published("sac", "Pendulum-v1", -157.0, 88.7, 20_000)
    assert found["qrdqn", "BeamRiderNoFrameskip-v4"] == Published(
        "qrdqn", "BeamRiderNoFrameskip-v4", 17122.9, None, 10_000_000
    )
    assert found["ppo", "MiniGrid-DoorKey-5x5-v0"].mean_reward == 0.964
    assert found["ppo_lstm", "PendulumNoVel-v1"].mean_reward == -217.9
    assert found["tqc", "FetchSlide-v1"].n_timesteps == 3_000_000


def test_reads_the_first_table_of_a_markdown_file(tmp_path):
    path = tmp_path / "benchmark.md"
    path.write_text(TABLE)
    assert read_published(path) == [
        Published("a2c", "Acrobot-v1", -83.353, 17.213, 500_000),
        Published("ppo", "Hopper-v3", 2410.435, None, 1_000_000),
    ]


def test_reads_csv(tmp_path):
    path = tmp_path / "own.csv"
    path.write_text("env_id,algo,mean_reward,n_timesteps\nA-v1,ppo,1e3,2500\n")
    assert read_published(path) == [Published("ppo", "A-v1", 1000.0, None, 2500)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("algo,env_id\nppo,A-v1\n", "no column 'mean_reward'"),
        ("", "no table in it"),
        ("algo,env_id,mean_reward\nppo,A-v1,good\n", "mean_reward of ppo on A-v1 is 'good' and no number"),
        ("| algo | env_id | mean_reward |\n", "no table in it"),
        ("algo,env_id,mean_reward\nppo,A-v1,nan\n", "mean_reward of ppo on A-v1 is 'nan' and no number"),
        ("algo,env_id,mean_reward,n_timesteps\nppo,A-v1,1,1e400\n", "n_timesteps of ppo on A-v1 is '1e400' and no number"),
        (f"algo,env_id,mean_reward\nppo,A-v1,{'9' * 200_000}\n", "larger than field limit"),
    ],
)
def test_says_what_is_wrong_with_a_file(text, message, tmp_path):
    path = tmp_path / "own.csv"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        read_published(path)


def test_rows_that_are_too_short_or_too_long(tmp_path):
    path = tmp_path / "own"
    path.write_text("algo,env_id,mean_reward,std_reward\nppo\nppo,A-v1,5\nppo,B-v1,6,1,2,3\n")
    expected = [Published("ppo", "A-v1", 5.0), Published("ppo", "B-v1", 6.0, 1.0)]
    assert read_published(path) == expected
    path.write_text(
        "| algo | env_id | mean_reward | std_reward |\n| --- | --- | --- | --- |\n| ppo |\n| ppo | A-v1 | 5 |\n"
        "| ppo | B-v1 | 6 | 1 | 2 |\n"
    )
    assert read_published(path) == expected


def test_a_file_that_is_not_there_or_no_text(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read"):
        read_published(tmp_path / "none.csv")
    (tmp_path / "bytes.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="cannot be read"):
        read_published(tmp_path / "bytes.csv")


def test_the_figure_of_a_run_is_of_its_environment_or_of_another_version_of_it():
    figures = [Published("ppo", f"{name}", 1.0) for name in ("Hopper-v2", "Hopper-v3", "HopperHop-v3", "Walker-v4", "Plain")]
    assert find_published(figures, "ppo", "Hopper-v2").env_id == "Hopper-v2"
    assert find_published(figures, "ppo", "Hopper-v5").env_id == "Hopper-v3"
    assert find_published(figures, "ppo", "Plain").env_id == "Plain"
    assert find_published(figures, "ppo", "ALE/Hopper-v3") is None
    assert find_published(figures, "sac", "Hopper-v3") is None
    assert find_published(figures, "ppo", "Hop-v3") is None
