"""The models of a run: their order, names and captions, and how long each was trained."""

import json
import zipfile

import pytest

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.video.models import SavedModel, saved_model, saved_models, trained_steps


def put(path, steps):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data", json.dumps({"num_timesteps": steps}))


@pytest.fixture
def run(tmp_path):
    for steps in (20_000, 5_000, 10_000):
        put(tmp_path / f"rl_model_{steps}_steps.zip", steps)
    put(tmp_path / "best_model.zip", 10_000)
    put(tmp_path / "CartPole-v1.zip", 20_000)
    return tmp_path


def test_models_come_in_the_order_of_their_steps(run):
    listed = saved_models(run, "ppo", "CartPole-v1")
    assert [(model.which, model.steps) for model in listed] == [
        (5_000, 5_000),
        (10_000, 10_000),
        ("best", 10_000),
        (20_000, 20_000),
        ("final", 20_000),
    ]


def test_names_and_captions(run):
    assert [(model.prefix, model.caption) for model in saved_models(run, "my:Algo", "CartPole-v1")][1:4] == [
        ("checkpoint-10000-my-Algo-CartPole-v1", "checkpoint, 10,000 steps"),
        ("best-model-my-Algo-CartPole-v1", "best model, 10,000 steps"),
        ("checkpoint-20000-my-Algo-CartPole-v1", "checkpoint, 20,000 steps"),
    ]
    assert saved_model(run, "ppo", "CartPole-v1", "final") == SavedModel("final", 20_000, "final-model-ppo-CartPole-v1")


def test_a_run_may_have_some_of_them_only(run):
    (run / "CartPole-v1.zip").unlink()
    (run / "best_model.zip").unlink()
    assert [model.which for model in saved_models(run, "ppo", "CartPole-v1")] == [5_000, 10_000, 20_000]


def test_a_damaged_model_is_left_out_where_there_are_others(run, caplog):
    (run / "rl_model_10000_steps.zip").write_bytes(b"half")
    put(run / "rl_model_007_steps.zip", 7)
    assert [model.which for model in saved_models(run, "ppo", "CartPole-v1")] == [5_000, "best", 20_000, "final"]
    assert [message.rpartition(": ")[2] for message in caplog.messages] == ["left out"] * 2
    (run / "rl_model_007_steps.zip").unlink()
    for path in run.glob("*.zip"):
        path.write_bytes(b"half")
    with pytest.raises(ConfigError, match="is no zip archive"):
        saved_models(run, "ppo", "CartPole-v1")


def test_a_run_without_models_is_told(tmp_path):
    with pytest.raises(ConfigError, match=r"no CartPole-v1\.zip in '.*': models there are none"):
        saved_models(tmp_path, "ppo", "CartPole-v1")


DATA = {
    "empty": "{}",
    "list": "[]",
    "words": "nothing",
    "deep": "[" * 100_000,
    "infinite": '{"num_timesteps": Infinity}',
    "negative": '{"num_timesteps": -1}',
    "yes": '{"num_timesteps": true}',
}


@pytest.mark.parametrize("content", [b"", b"no zip", *DATA])
def test_a_damaged_model_is_told(tmp_path, content):
    path = tmp_path / "best_model.zip"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("data", DATA[content])
    with pytest.raises(ConfigError, match=r"best_model\.zip'? is no (model of Stable-Baselines3|zip archive)") as caught:
        trained_steps(path)
    assert "\n" not in str(caught.value)


def test_a_model_that_would_unpack_to_gigabytes_is_not_read(tmp_path):
    path = tmp_path / "best_model.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data", " " * 2**25)
    with pytest.raises(ConfigError, match="would unpack to"):
        trained_steps(path)
