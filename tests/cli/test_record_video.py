"""`record-video`: runs of this package and of rl_zoo3, looked at picture by picture; what cannot be recorded."""

import os
import signal
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from recorded_runs import called, train_cart_pole, train_drawn, train_with_rl_zoo3
from videos import names, nearest_caption, read_gif, read_video

from lit_sb3_ray.cli import main as cli
from lit_sb3_ray.cli.record_video import build_parser

FINAL = "final-model-ppo-CartPole-v1-step-0-to-step-20.mp4"
DRAWN = ["--env", "TinyDrawn-v0", "--gym-packages", "tiny_envs"]
GREEN, RED = [0, 160, 0], [160, 0, 0]


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    return train_cart_pole(tmp_path_factory.mktemp("own") / "logs")


@pytest.fixture(scope="module")
def drawn_logs(tmp_path_factory):
    return train_drawn(tmp_path_factory.mktemp("drawn") / "logs")


record = partial(called, "record-video")


def steps_told(pictures):
    """How many steps the bar of each picture of TinyDrawn tells of."""
    return [round((picture[:, 2].min(axis=1) > 200).sum() / 4) for picture in pictures]


FLAGS = [
    (["--env"], "CartPole-v1"),
    (["-f", "--folder"], "rl-trained-agents"),
    (["-o", "--output-folder"], None),
    (["--algo"], "ppo"),
    (["-n", "--n-timesteps"], 1000),
    (["--n-envs"], 1),
    (["--deterministic"], False),
    (["--stochastic"], False),
    (["--seed"], 0),
    (["--no-render"], False),
    (["--exp-id"], 0),
    (["--load-best"], False),
    (["--load-checkpoint"], None),
    (["--load-last-checkpoint"], False),
    (["--env-kwargs"], None),
    (["--custom-objects"], False),
]


@pytest.mark.parametrize(("spellings", "default"), FLAGS)
def test_flags_of_rl_zoo3_are_there_with_their_defaults(spellings, default):
    known = {spelling: action for action in build_parser()._actions for spelling in action.option_strings}
    assert all(known[spelling].default == default for spelling in spellings)


def test_records_a_run_into_its_folder(logs, capsys):
    code, lines, err = record(capsys, logs, "-n", "20")
    videos = logs / "ppo" / "CartPole-v1_1" / "videos"
    assert code == 0, err
    assert lines == [f"Loading {videos.parent / 'CartPole-v1.zip'}", f"Saved {videos / FINAL}"]
    assert names(videos) == [FINAL]
    pictures, rate = read_video(videos / FINAL)
    assert rate == 50
    assert pictures.shape == (21, 400, 600, 3)
    # A white sky with a black cart and a brown pole, which move.
    assert all(picture.max() > 250 and picture.min() < 10 for picture in pictures)
    assert np.abs(pictures[0].astype(int) - pictures[9]).max() > 100


@pytest.mark.parametrize(
    ("flags", "begin"),
    [
        (["--load-best"], "best-model-ppo-CartPole-v1-"),
        (["--load-checkpoint", "128"], "checkpoint-128-ppo-CartPole-v1-"),
        (["--load-last-checkpoint"], "checkpoint-256-ppo-CartPole-v1-"),
    ],
)
def test_other_models_have_names_of_their_own(logs, capsys, tmp_path, flags, begin):
    code, _, err = record(capsys, logs, "-n", "5", "-o", str(tmp_path / "new" / "videos"), *flags)
    assert code == 0, err
    (name,) = names(tmp_path / "new" / "videos")
    assert name == f"{begin}step-0-to-step-5.mp4"
    assert len(read_video(tmp_path / "new" / "videos" / name)[0]) == 6


def test_several_environments_are_tiled(logs, capsys, tmp_path):
    assert record(capsys, logs, "-n", "5", "--n-envs", "3", "-o", str(tmp_path))[0] == 0
    pictures, _ = read_video(tmp_path / names(tmp_path)[0])
    assert pictures.shape == (6, 800, 1200, 3)
    tiles = [pictures[3, :400, :600], pictures[3, :400, 600:], pictures[3, 400:, :600]]
    assert all(tile.max() > 250 and tile.min() < 10 for tile in tiles)
    assert pictures[3, 408:, 608:].max() < 20


def test_gif_label_and_quiet(logs, capsys, tmp_path):
    assert record(capsys, logs, "-n", "20", "--gif", "--label", "--verbose", "0", "-o", str(tmp_path)) == (0, [], "")
    assert names(tmp_path) == [FINAL.replace("mp4", "gif"), FINAL]
    pictures, _ = read_video(tmp_path / FINAL)
    assert pictures.shape[1:] == (448, 600, 3)
    texts = ["final model, 256 steps", "best model, 256 steps", "final model, 128 steps", "checkpoint, 256 steps"]
    assert {nearest_caption(picture, texts) for picture in pictures} == {"final model, 256 steps"}
    # 21 pictures at 50 a second last 0.42 seconds.
    moving, rate = read_gif(tmp_path / FINAL.replace("mp4", "gif"))
    assert rate == 10
    assert moving.shape == (4, 448, 600, 3)
    assert {nearest_caption(picture, texts) for picture in moving} == {"final model, 256 steps"}
    assert all(picture[48:].max() > 250 and picture[48:].min() < 30 for picture in moving)


def test_the_runs_own_arguments_of_the_environment_hold(drawn_logs, capsys, tmp_path):
    code, _, err = record(capsys, drawn_logs, *DRAWN, "-n", "9", "-o", str(tmp_path))
    assert code == 0, err
    pictures, rate = read_video(tmp_path / names(tmp_path)[0])
    assert rate == 20
    assert pictures.shape == (10, 48, 64, 3)
    # Episodes of 7 steps as config.yml has it, not of 5; green as args.yml has it, not blue.
    assert steps_told(pictures) == [0, 1, 2, 3, 4, 5, 6, 0, 1, 2]
    assert np.abs(pictures[:, :, 16:].mean(axis=(0, 1, 2)) - GREEN).max() < 8


def test_the_command_line_goes_over_them(drawn_logs, capsys, tmp_path):
    words = ["--env-kwargs", "colour:[160, 0, 0]", "length:3", "--label", "-n", "4", "-o", str(tmp_path)]
    code, _, err = record(capsys, drawn_logs, *DRAWN, *words)
    assert code == 0, err
    pictures, _ = read_video(tmp_path / names(tmp_path)[0])
    # Too narrow for a caption, and so four times as large.
    assert pictures.shape == (5, 24 + 192, 256, 3)
    assert np.abs(pictures[:, 24:, 64:].mean(axis=(0, 1, 2)) - RED).max() < 8
    assert nearest_caption(pictures[0], ["final model, 64 steps", "final model, 32 steps"]) == "final model, 64 steps"


def test_it_needs_no_display_and_leaves_nothing_elsewhere(drawn_logs, tmp_path):
    env = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER")}
    (tmp_path / "temporary").mkdir()
    env |= {"TMPDIR": str(tmp_path / "temporary"), "PYTHONPATH": os.pathsep.join(sys.path)}
    words = [sys.executable, "-m", "lit_sb3_ray", "record-video", "-f", str(drawn_logs), *DRAWN, "-n", "5", "--device", "cpu"]
    subprocess.run([*words, "-P", "-o", str(tmp_path / "videos")], env=env, capture_output=True, check=True)
    assert names(tmp_path / "temporary") == []
    assert names(tmp_path / "videos") == ["final-model-ppo-TinyDrawn-v0-step-0-to-step-5.mp4"]


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_a_signal_ends_it_and_what_there_is_is_saved(drawn_logs, capsys, tmp_path, name, code):
    words = ["--env-kwargs", "signal_at:12", f"signum:{int(signal.Signals[name])}", "-n", "1000", "-o", str(tmp_path)]
    assert record(capsys, drawn_logs, *DRAWN, *words)[0] == code
    assert names(tmp_path) == ["final-model-ppo-TinyDrawn-v0-step-0-to-step-12.mp4"]
    assert len(read_video(tmp_path / names(tmp_path)[0])[0]) == 13


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--algo", "sac"], "no runs of sac"),
        (["--num-threads", "999999999"], "--num-threads 999999999: 1024 at most"),
        (["-o", "x" * 300], "cannot be written: File name too long"),
        (["-o", "a\0b"], "cannot be written: embedded null byte"),
        (["--load-checkpoint", "7"], "no rl_model_7_steps.zip in"),
        (["--load-best"], "no best_model.zip in"),
        (
            ["--env-kwargs", "draws:nothing"],
            "'TinyDrawn-v0' cannot be recorded: it draws NoneType instead of bytes",
        ),
        (["--env-kwargs", "draws:error"], "environment 'TinyDrawn-v0' cannot be recorded: OSError: no light"),
        (
            ["--env-kwargs", "render_mode:human"],
            "render_mode:human: a video is recorded with render_mode rgb_array",
        ),
        (["--seed", "-1"], "--seed -1"),
        (["-n", "0"], "0 is below 1"),
        (["-o", os.devnull], "--output-folder"),
    ],
)
def test_bad_input_is_one_line_and_code_2_and_writes_nothing(drawn_logs, capsys, tmp_path, words, part):
    code, lines, err = record(capsys, drawn_logs, *DRAWN, "-o", str(tmp_path), *words)
    assert code == 2
    assert part in err
    assert len(err.splitlines()) == 1
    assert not any(line.startswith("Saved") for line in lines)
    assert names(tmp_path) == []


def test_an_environment_without_render_mode_cannot_be_recorded(tmp_path, capsys):
    (tmp_path / "masked.yml").write_text("TinyMasked-v0: {n_timesteps: 16, policy: MlpPolicy, n_steps: 16, batch_size: 16}")
    env = ["--env", "TinyMasked-v0", "--gym-packages", "tiny_envs"]
    train = ["-conf", str(tmp_path / "masked.yml"), "-f", str(tmp_path / "logs"), "--eval-freq", "-1", "--device", "cpu"]
    assert cli.main(["train", *env, *train]) == 0
    capsys.readouterr()
    code, _, err = record(capsys, tmp_path / "logs", *env)
    assert code == 2
    assert err.splitlines() == [
        "lit-sb3-ray: error: environment 'TinyMasked-v0' cannot be shown or recorded: its constructor takes no render_mode"
    ]


@pytest.mark.slow
def test_records_a_run_of_rl_zoo3(tmp_path, capsys):
    logs = train_with_rl_zoo3(tmp_path / "logs")
    code, _, err = record(capsys, logs, "-n", "20", "--label", "-o", str(tmp_path / "videos"))
    assert code == 0, err
    pictures, _ = read_video(tmp_path / "videos" / FINAL)
    assert pictures.shape == (21, 448, 600, 3)
    assert nearest_caption(pictures[20], ["final model, 256 steps", "best model, 256 steps"]) == "final model, 256 steps"
    assert all(picture[48:].max() > 250 and picture[48:].min() < 10 for picture in pictures)


@pytest.mark.parametrize("command", ["record-video", "record-training"])
def test_a_folder_in_the_place_of_a_video_is_told_before_anything_is_recorded(command, drawn_logs, tmp_path, capsys):
    taken = {"record-video": "final-model-ppo-TinyDrawn-v0-step-0-to-step-5.mp4", "record-training": "training.mp4"}[command]
    (tmp_path / taken).mkdir()
    code, lines, err = called(command, capsys, drawn_logs, *DRAWN, "-n", "5", "-o", str(tmp_path))
    assert code == 2
    assert f"{taken}' is a folder, and a video is to be written there" in err
    assert len(err.splitlines()) == 1
    assert not [line for line in lines if line.startswith("Saved")]
    assert names(tmp_path) == [taken]
