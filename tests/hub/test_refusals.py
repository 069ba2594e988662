"""Hostile repositories: whatever would run something as it is loaded is refused in one line, and not run."""

import pickle

import pytest
from hostile import hostile_pickle, rewrite_model, zip_with
from hub_client import AGENT, REPO, load

from lit_sb3_ray import load_run
from lit_sb3_ray.cli import main as cli
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.experiment.origin import is_trusted
from lit_sb3_ray.untrusted.models import read_custom_objects


def bad_model(pushed, tmp_path, made):
    (tmp_path / "good.zip").write_bytes(pushed["ppo-CartPole-v1.zip"])
    return rewrite_model(tmp_path / "good.zip", tmp_path / "bad.zip", policy_class=hostile_pickle(made)).read_bytes()


HOSTILE = {
    "model": "it holds posix.system, which is not on the list",
    "statistics": "it holds posix.system, which is not on the list",
    "tag": "refused YAML content: could not determine a constructor for the tag",
    "way_out": "leads out of the folder",
    "bomb": "would unpack to",
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_what_would_run_something_is_refused_and_not_run(hub, pushed, tmp_path, capsys, kind):
    made = tmp_path / "made"
    tag = f"!!python/object/apply:os.system ['touch {made}']\n".encode()
    outside = zip_with(tmp_path / "out.zip", "../../../out.csv", "0.monitor.csv").read_bytes()
    bomb = zip_with(tmp_path / "bomb.zip", "0.monitor.csv", content=bytes(32 * 2**20)).read_bytes()
    changed = {
        "model": {"ppo-CartPole-v1.zip": bad_model(pushed, tmp_path, made)},
        "statistics": {"vec_normalize.pkl": hostile_pickle(made)},
        "tag": {"config.yml": tag},
        "way_out": {"train_eval_metrics.zip": outside},
        "bomb": {"train_eval_metrics.zip": bomb},
    }[kind]
    hub.add(REPO, {**pushed, **changed})
    assert cli.main(["load-from-hub", *AGENT, "-orga", "me", "-f", str(tmp_path / "logs")]) == 2
    err = capsys.readouterr().err
    assert HOSTILE[kind] in err
    assert len(err.splitlines()) == 1
    assert not made.exists()
    assert not (tmp_path / "out.csv").exists()
    assert not (tmp_path / "logs").exists()


def test_trust_lifts_it_and_is_remembered(hub, pushed, tmp_path):
    made = tmp_path / "made"
    hub.add(REPO, {**pushed, "vec_normalize.pkl": hostile_pickle(made)})
    words = ["load-from-hub", *AGENT, "-orga", "me", "-f", str(tmp_path / "logs"), "--trust"]
    assert cli.main(words) == 0
    assert not made.exists()
    run = tmp_path / "logs" / "ppo" / "CartPole-v1_1"
    assert is_trusted(run / "CartPole-v1")
    with pytest.raises(ConfigError, match="holds no normalisation statistics of SB3"):
        load_run(run, device="cpu")
    assert made.exists()


@pytest.mark.parametrize("kind", ["model", "statistics"])
def test_a_downloaded_run_is_read_with_the_list_whenever_it_is_opened(filled, pushed, tmp_path, capsys, kind):
    made = tmp_path / "made"
    run = load(tmp_path / "logs")
    if kind == "model":
        run.model.write_bytes(bad_model(pushed, tmp_path, made))
    else:
        run.statistics.write_bytes(hostile_pickle(made))
    enjoy = ["enjoy", *AGENT, "-f", str(tmp_path / "logs"), "--no-render", "-n", "5", "--device", "cpu"]
    warm = [
        "train",
        *AGENT,
        "-f",
        str(tmp_path / "other"),
        "-i",
        str(run.model),
        "-n",
        "64",
        "-params",
        "n_steps:32",
        "n_envs:2",
    ]
    for words in (enjoy, [*warm, "normalize:True", "--device", "cpu"]):
        assert cli.main(words) == 2
        assert "it holds posix.system, which is not on the list" in capsys.readouterr().err
    with pytest.raises(ConfigError, match="refused and not run"):
        load_run(run.path, device="cpu")
    assert not made.exists()


def test_pickles_of_a_push_hold_no_more_than_the_list(pushed, tmp_path):
    # What this package trains is readable under its own rules: the round trip does not lean on what is left unread.
    (tmp_path / "model.zip").write_bytes(pushed["ppo-CartPole-v1.zip"])
    objects = read_custom_objects(tmp_path / "model.zip", {})
    assert objects["policy_class"].__name__ == "ActorCriticPolicy"
    assert pickle.loads(pushed["vec_normalize.pkl"]).obs_rms.mean.shape == (4,)
