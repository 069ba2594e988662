"""Pushing against a stand-in for the Hub, with the real client: what goes up, who sees it, what an interruption leaves."""

import io
import json
import sys
import zipfile

import pytest
import yaml
from hub_client import PUSH, REPO
from huggingface_hub import ModelCard

from lit_sb3_ray.cli import main as cli


def test_a_push_holds_what_rl_zoo3_s_holds(pushed, logs):
    run = logs / "ppo" / "CartPole-v1_1"
    assert pushed["ppo-CartPole-v1.zip"] == (run / "CartPole-v1.zip").read_bytes()
    assert pushed["vec_normalize.pkl"] == (run / "CartPole-v1" / "vecnormalize.pkl").read_bytes()
    assert yaml.safe_load(pushed["config.yml"]) == yaml.safe_load((run / "CartPole-v1" / "config.yml").read_text())
    assert yaml.safe_load(pushed["args.yml"])["seed"] == 1
    assert yaml.safe_load(pushed["env_kwargs.yml"]) == {}
    assert {"ppo-CartPole-v1/data", "ppo-CartPole-v1/system_info.txt"} < set(pushed)
    with zipfile.ZipFile(io.BytesIO(pushed["train_eval_metrics.zip"])) as archive:
        assert {"evaluations.npz", "0.monitor.csv", "1.monitor.csv", "metrics.csv"} == set(archive.namelist())
    results = json.loads(pushed["results.json"])
    assert results["n_eval_episodes"] == 2
    assert results["is_deterministic"] is True
    card = ModelCard(pushed["README.md"].decode())
    assert f"{results['mean_reward']:.2f} +/- {results['std_reward']:.2f}" in card.text
    assert card.data.to_dict()["model-index"][0]["name"] == "PPO"


def test_a_push_is_private_unless_it_is_said(hub, logs, capsys):
    assert cli.main([*PUSH, "-f", str(logs), "-m", "First"]) == 0
    assert hub.repositories[REPO].private is True
    assert hub.repositories[REPO].messages == ["First"]
    assert f"Pushed to {hub.url}/{REPO} (private)" in capsys.readouterr().out
    assert cli.main([*PUSH, "-f", str(logs), "-name", "shown", "--public"]) == 0
    assert hub.repositories["me/shown"].private is False
    assert "-name shown" in hub.repositories["me/shown"].files["README.md"].decode()
    assert "(public)" in capsys.readouterr().out


def test_a_public_repository_is_pushed_to_on_request_only(hub, logs, capsys):
    hub.add(REPO, {})
    assert cli.main([*PUSH, "-f", str(logs)]) == 2
    assert "is public: give --public to push to it" in capsys.readouterr().err
    assert hub.repositories[REPO].files == {}
    assert cli.main([*PUSH, "-f", str(logs), "--public"]) == 0
    assert "README.md" in hub.repositories[REPO].files


def test_the_same_push_after_an_interruption_uploads_nothing_twice(hub, logs, capsys):
    hub.failing = "/commit/"
    assert cli.main([*PUSH, "-f", str(logs)]) == 2
    err = capsys.readouterr().err
    assert f"cannot push to {REPO}: " in err
    assert len(err.splitlines()) == 1
    assert set(hub.repositories[REPO].files) == {".gitattributes"}
    uploads = list(hub.uploads)
    assert len(uploads) == 3
    hub.failing = ""
    assert cli.main([*PUSH, "-f", str(logs)]) == 0
    assert hub.uploads == uploads
    assert "ppo-CartPole-v1.zip" in hub.repositories[REPO].files


def test_what_an_earlier_push_has_left_is_removed(hub, logs):
    hub.add(REPO, {"replay.mp4": b"old", "ppo-CartPole-v1/policy.pth": b"old", "notes.md": b"mine"}, private=True)
    assert cli.main([*PUSH, "-f", str(logs)]) == 0
    files = hub.repositories[REPO].files
    assert "replay.mp4" not in files
    assert "ppo-CartPole-v1/policy.pth" not in files
    assert files["notes.md"] == b"mine"


@pytest.mark.parametrize(("token", "part"), [("", "there is no token"), ("hf_wrong", "the Hub refused it (401)")])
def test_without_the_right_token_nothing_is_played(hub, logs, monkeypatch, capsys, token, part):
    monkeypatch.setenv("HF_TOKEN", token)
    assert cli.main([*PUSH, "-f", str(logs)]) == 2
    captured = capsys.readouterr()
    assert part in captured.err
    assert "HF_TOKEN or --token" in captured.err
    assert "Mean reward" not in captured.err
    assert hub.created == []


def test_a_database_s_address_stays_at_home(hub, logs):
    settings = logs / "ppo" / "CartPole-v1_1" / "CartPole-v1" / "args.yml"
    before = settings.read_text()
    try:
        settings.write_text(before.replace("storage: null", "storage: postgresql://me:secret@host/db"))
        assert "secret" in settings.read_text()
        assert cli.main([*PUSH, "-f", str(logs)]) == 0
    finally:
        settings.write_text(before)
    assert not [name for name, content in hub.repositories[REPO].files.items() if b"secret" in content]


def test_a_replay_is_recorded_where_it_can_be(hub, logs):
    words = [word for word in PUSH if word != "--no-render"]
    assert cli.main([*words, "-f", str(logs), "-n", "5"]) == 0
    files = hub.repositories[REPO].files
    assert files["replay.mp4"][4:8] == b"ftyp"
    assert "replay.mp4" in files["README.md"].decode()


def test_a_replay_that_cannot_be_recorded_is_told_and_left_out(hub, logs, monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    words = [word for word in PUSH if word != "--no-render"]
    assert cli.main([*words, "-f", str(logs), "-n", "5"]) == 0
    assert "No replay video: recording a video needs the package 'imageio_ffmpeg'" in caplog.text
    assert "replay.mp4" not in hub.repositories[REPO].files
    assert "replay.mp4" not in hub.repositories[REPO].files["README.md"].decode()
