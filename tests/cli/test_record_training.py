"""`record-training`: every model of a run in one video, in the order of its steps, each with its caption."""

import itertools
from functools import partial

import pytest
from recorded_runs import called, train_cart_pole, train_drawn, train_with_rl_zoo3
from videos import names, nearest_caption, read_gif, read_video

from lit_sb3_ray.cli.record_training import build_parser
from lit_sb3_ray.video.models import trained_steps

DRAWN = ["--env", "TinyDrawn-v0", "--gym-packages", "tiny_envs"]
CART_POLE_TEXTS = [
    *(f"checkpoint, {steps} steps" for steps in (128, 256)),
    *(f"best model, {steps} steps" for steps in (128, 256)),
    "final model, 256 steps",
]


record = partial(called, "record-training")


def order_of(pictures, texts):
    """What the captions say one after the other, and how many pictures each has."""
    told = [nearest_caption(picture, texts) for picture in pictures]
    return [(text, len(list(group))) for text, group in itertools.groupby(told)]


FLAGS = [
    (["--env"], "CartPole-v1"),
    (["-f", "--folder"], "rl-trained-agents"),
    (["-o", "--output-folder"], None),
    (["--algo"], "ppo"),
    (["-n", "--n-timesteps"], 1000),
    (["--n-envs"], 1),
    (["--deterministic"], False),
    (["-g", "--gif"], False),
    (["--seed"], 0),
    (["--exp-id"], 0),
]


@pytest.mark.parametrize(("spellings", "default"), FLAGS)
def test_flags_of_rl_zoo3_are_there_with_their_defaults(spellings, default):
    known = {spelling: action for action in build_parser()._actions for spelling in action.option_strings}
    assert all(known[spelling].default == default for spelling in spellings)


def check_cart_pole(folder, n_steps, best):
    """Looks at all videos of a run of CartPole: two checkpoints, a final model, and the best, trained for so many steps."""
    clips = [name for name in names(folder) if name.endswith(f"-step-0-to-step-{n_steps}.mp4")]
    assert sorted(clip.partition("-ppo-CartPole-v1")[0] for clip in clips) == [
        "best-model",
        "checkpoint-128",
        "checkpoint-256",
        "final-model",
    ]
    pictures, rate = read_video(folder / "training.mp4")
    assert rate == 50
    assert pictures.shape == (4 * (n_steps + 1), 448, 600, 3)
    order = order_of(pictures, CART_POLE_TEXTS)
    assert {count for _, count in order} == {n_steps + 1}
    expected = ["checkpoint, 128 steps", "checkpoint, 256 steps", "final model, 256 steps"]
    expected.insert({128: 1, 256: 2}[best], f"best model, {best} steps")
    assert [text for text, _ in order] == expected
    assert all(picture[48:].max() > 250 and picture[48:].min() < 10 for picture in pictures)


def test_joins_all_models_of_a_run(tmp_path, capsys):
    logs = train_cart_pole(tmp_path / "logs")
    videos = logs / "ppo" / "CartPole-v1_1" / "videos"
    videos.mkdir()
    (videos / "mine.txt").write_text("kept")
    (videos / "training.mp4").write_text("older")
    capsys.readouterr()
    code, lines, err = record(capsys, logs, "-n", "6", "--gif")
    assert code == 0, err
    assert [line.partition(" ")[0] for line in lines] == ["Loading", "Saved"] * 4 + ["Saved", "Saved"]
    assert lines[-2:] == [f"Saved {videos / 'training.mp4'}", f"Saved {videos / 'training.gif'}"]
    check_cart_pole(videos, 6, trained_steps(videos.parent / "best_model.zip"))
    assert len(names(videos)) == 7
    assert (videos / "mine.txt").read_text() == "kept"
    # 28 pictures at 50 a second last 0.56 seconds.
    moving, rate = read_gif(videos / "training.gif")
    assert rate == 10
    assert len(moving) in (5, 6)
    assert moving.shape[1:] == (448, 600, 3)
    assert nearest_caption(moving[0], CART_POLE_TEXTS) == "checkpoint, 128 steps"
    assert nearest_caption(moving[-1], CART_POLE_TEXTS) == "final model, 256 steps"


def test_environments_of_ones_own_and_several_of_them(tmp_path, capsys):
    logs = train_drawn(tmp_path / "logs")
    code, _, err = record(capsys, logs, *DRAWN, "-n", "4", "--n-envs", "2", "-o", str(tmp_path / "videos"))
    assert code == 0, err
    pictures, rate = read_video(tmp_path / "videos" / "training.mp4")
    assert rate == 20
    # Two of 48 x 64 one above the other, four times as large, and the caption.
    assert pictures.shape == (15, 24 + 384, 256, 3)
    texts = ["checkpoint, 32 steps", "checkpoint, 64 steps", "final model, 64 steps"]
    assert order_of(pictures, texts) == [(text, 5) for text in texts]
    assert abs(pictures[:, 24:, 64:, 1].mean() - 160) < 8
    assert names(tmp_path / "videos") == [
        "checkpoint-32-ppo-TinyDrawn-v0-step-0-to-step-4.mp4",
        "checkpoint-64-ppo-TinyDrawn-v0-step-0-to-step-4.mp4",
        "final-model-ppo-TinyDrawn-v0-step-0-to-step-4.mp4",
        "training.mp4",
    ]

    words = ["--env-kwargs", "signal_at:3", "-n", "50", "-o", str(tmp_path / "stopped")]
    assert record(capsys, logs, *DRAWN, *words)[0] == 130
    assert names(tmp_path / "stopped") == ["checkpoint-32-ppo-TinyDrawn-v0-step-0-to-step-3.mp4"]

    code, _, err = record(capsys, logs, *DRAWN, "--env-kwargs", "draws:grey", "-o", str(tmp_path / "none"))
    assert code == 2
    assert "cannot be recorded: it draws uint8 of shape (48, 64)" in err
    assert len(err.splitlines()) == 1
    assert not (tmp_path / "none").exists()


def test_a_run_without_models_is_one_line_and_code_2(tmp_path, capsys):
    settings = tmp_path / "ppo" / "CartPole-v1_1" / "CartPole-v1"
    settings.mkdir(parents=True)
    (settings / "config.yml").write_text("{}")
    code, lines, err = record(capsys, tmp_path)
    assert (code, lines) == (2, [])
    assert "no CartPole-v1.zip in" in err
    assert "models there are none" in err
    assert len(err.splitlines()) == 1


@pytest.mark.slow
def test_joins_the_models_of_a_run_of_rl_zoo3(tmp_path, capsys):
    logs = train_with_rl_zoo3(tmp_path / "logs")
    code, _, err = record(capsys, logs, "-n", "6", "-o", str(tmp_path / "videos"))
    assert code == 0, err
    check_cart_pole(tmp_path / "videos", 6, trained_steps(logs / "ppo" / "CartPole-v1_1" / "best_model.zip"))
