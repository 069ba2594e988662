"""`enjoy`: how actions are chosen, what is printed, and runs of this package and of rl_zoo3 played from the command line."""

import os
import re
import subprocess
import sys

import pytest

from lit_sb3_ray.cli import display, enjoy, playing
from lit_sb3_ray.cli import main as cli
from lit_sb3_ray.cli.enjoy_parser import build_parser
from lit_sb3_ray.experiment.playback import Episode, Summary

TRAIN = ["-n", "256", "--device", "cpu", "--num-threads", "1", "--seed", "1", "--eval-freq", "128", "--save-freq", "128"]


@pytest.mark.parametrize(
    ("deterministic", "stochastic", "family", "expected"),
    [
        (False, False, False, True),
        (False, False, True, False),
        (True, False, True, True),
        (True, True, True, False),
        (False, True, False, False),
    ],
)
def test_how_actions_are_chosen(deterministic, stochastic, family, expected):
    assert playing.plays_deterministically(deterministic, stochastic, family) is expected


def test_a_display_is_only_missed_where_there_could_be_one():
    assert not display.has_display({}, "linux")
    assert not display.has_display({"DISPLAY": ""}, "linux")
    assert display.has_display({"DISPLAY": ":0"}, "linux")
    assert display.has_display({"WAYLAND_DISPLAY": "wayland-0"}, "linux")
    assert display.has_display({}, "darwin")


@pytest.mark.parametrize(("text", "value"), [("0", 0), ("-1", -1), ("12", 12), ("3f2a", "3f2a"), ("1_3f2a", "1_3f2a")])
def test_experiment_ids_are_numbers_or_words(text, value):
    assert build_parser().parse_args(["--exp-id", text]).exp_id == value


def test_lines():
    assert enjoy.episode_line(3, Episode(1, 2.0, 5, None), 1) == "Episode 3: reward 2.00, length 5"
    assert enjoy.episode_line(3, Episode(1, 2.0, 5, True), 2) == "Episode 3 (env 1): reward 2.00, length 5, success: yes"
    assert enjoy.summary_lines(None, 10) == ["No episode ended within 10 steps"]
    assert enjoy.summary_lines(Summary(2, 1.0, 0.5, 3.0, 0.0, 0.25), 10) == [
        "Success rate: 25.00%",
        "2 Episodes",
        "Mean reward: 1.00 +/- 0.50",
        "Mean episode length: 3.00 +/- 0.00",
    ]


@pytest.fixture(scope="module")
def own_logs(tmp_path_factory):
    logs = tmp_path_factory.mktemp("own") / "logs"
    words = ["-f", str(logs), *TRAIN, "-params", "n_steps:32", "n_envs:2", "normalize:True"]
    assert cli.main(["train", *words]) == 0
    return logs


def play(capsys, *words):
    code = cli.main(["enjoy", "--no-render", "--device", "cpu", *words])
    captured = capsys.readouterr()
    return code, captured.out.splitlines(), captured.err


@pytest.mark.parametrize("n_envs", [1, 3])
def test_plays_an_own_run_in_any_number_of_envs(own_logs, capsys, n_envs):
    code, lines, _ = play(capsys, "-f", str(own_logs), "-n", "120", "--n-envs", str(n_envs))
    assert code == 0
    assert lines[0].endswith("CartPole-v1.zip")
    told = [line for line in lines if re.fullmatch(r"Episode \d+( \(env \d\))?: reward [\d.]+, length \d+", line)]
    assert len(told) >= n_envs
    assert f"{len(told)} Episodes" in lines
    assert lines[-1].startswith("Mean episode length: ")


@pytest.mark.parametrize("flags", [["--load-best"], ["--load-checkpoint", "128"], ["--load-last-checkpoint"]])
def test_plays_other_models_of_a_run(own_logs, capsys, flags):
    code, lines, _ = play(capsys, "-f", str(own_logs), "-n", "100", *flags)
    assert code == 0
    assert re.search(r"best_model\.zip|rl_model_\d+_steps\.zip", lines[0])


def test_norm_reward_changes_the_rewards(own_logs, capsys):
    raw = play(capsys, "-f", str(own_logs), "-n", "100")[1]
    scaled = play(capsys, "-f", str(own_logs), "-n", "100", "--norm-reward")[1]
    assert raw[-1] == scaled[-1]
    assert raw[-2] != scaled[-2]


def test_the_same_seed_gives_the_same_episodes(own_logs, capsys):
    words = ["-f", str(own_logs), "-n", "100", "--stochastic", "--seed", "4"]
    assert play(capsys, *words)[1] == play(capsys, *words)[1]


def test_reward_log_is_a_monitor_folder(own_logs, capsys, tmp_path):
    from stable_baselines3.common.monitor import load_results

    _, lines, _ = play(capsys, "-f", str(own_logs), "-n", "100", "--n-envs", "2", "--reward-log", str(tmp_path / "rewards"))
    assert f"{len(load_results(str(tmp_path / 'rewards')))} Episodes" in lines


def test_quiet_prints_nothing(own_logs, capsys):
    assert play(capsys, "-f", str(own_logs), "-n", "50", "--verbose", "0") == (0, [], "")


def test_without_a_display_it_plays_all_the_same(own_logs):
    env = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER")}
    words = [sys.executable, "-m", "lit_sb3_ray", "enjoy", "-f", str(own_logs), "-n", "50", "--device", "cpu"]
    assert "Mean reward" in subprocess.run(words, env=env, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--algo", "sac"], "no runs of sac"),
        (["--exp-id", "9"], "ids are 1"),
        (["--load-checkpoint", "7"], "models there are CartPole-v1.zip, best_model.zip"),
        (["--env", "Acrobot-v1"], "no run of ppo on Acrobot-v1"),
    ],
)
def test_a_missing_model_is_one_line_and_code_2(own_logs, capsys, words, part):
    code, lines, err = play(capsys, "-f", str(own_logs), *words)
    assert (code, lines) == (2, [])
    assert part in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["--env", "CatPole-v1"], ["unknown environment 'CatPole-v1': did you mean 'CartPole-v1'?"]),
        (["--algo", "pop"], ["unknown algorithm 'pop' (--algo): did you mean 'ppo'?"]),
    ],
)
def test_the_hub_is_not_asked_for_a_misspelt_name(capsys, tmp_path, monkeypatch, words, parts):
    monkeypatch.chdir(tmp_path)
    code, lines, err = play(capsys, *words)
    assert (code, lines) == (2, [])
    [line] = err.splitlines()
    for part in ("there is no folder 'rl-trained-agents'", "and the Hub was not asked:", *parts):
        assert part in line


def test_why_the_hub_has_not_helped_is_told_beside_what_was_missing(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    code, _, err = play(capsys, "--env", "Acrobot-v1")
    assert code == 2
    [line] = err.splitlines()
    assert "there is no folder 'rl-trained-agents'" in line
    assert "; the Hub was tried, too: cannot download from sb3/ppo-Acrobot-v1: " in line


@pytest.mark.slow
def test_plays_a_run_of_rl_zoo3(tmp_path, capsys):
    words = ["-f", str(tmp_path), *TRAIN, "-params", "n_steps:32", "n_envs:2", "normalize:True"]
    subprocess.run([sys.executable, "-m", "rl_zoo3.train", *words], capture_output=True, check=True)
    for flags in ([], ["--load-best"], ["--load-last-checkpoint"]):
        code, lines, err = play(capsys, "-f", str(tmp_path), "-n", "100", *flags)
        assert code == 0, err
        assert "Mean reward" in lines[-2]
