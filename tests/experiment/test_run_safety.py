"""A run is never lost: not to a second process, a broken file, an env that cannot be closed, or a value no file can hold."""

from __future__ import annotations

import gc
import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest
import torch

from lit_sb3_ray import ExperimentManager, load_run
from lit_sb3_ray.cli import main as cli
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.experiment import run_folder
from lit_sb3_ray.experiment.checkpoints import latest_checkpoint, rewind
from lit_sb3_ray.experiment.evaluations import read_evaluations
from lit_sb3_ray.experiment.lock import RunLock
from lit_sb3_ray.experiment.loggers import attach_sb3_logger
from lit_sb3_ray.experiment.metrics import cut_metrics
from lit_sb3_ray.experiment.origin import Origin, write_origin

ENTRY = {"policy": "MlpPolicy", "n_steps": 8, "n_envs": 1, "n_timesteps": 32, "policy_kwargs": {"net_arch": [4]}}
OPTIONS = {"eval_freq": -1, "seed": 1, "verbose": 0, "device": "cpu"}
HOLDER = "import sys, pathlib; from lit_sb3_ray.experiment.lock import RunLock; "
HOLDER += "lock = RunLock(pathlib.Path(sys.argv[1])); print('held', flush=True); sys.stdin.read()"


def make(tmp_path, **options):
    return ExperimentManager(
        None, "a2c", "CartPole-v1", str(tmp_path / "logs"), **{"hyperparams": ENTRY, **OPTIONS, **options}
    )


def train(tmp_path, **options):
    manager = make(tmp_path, **options)
    model = manager.setup_experiment()
    manager.learn(model)
    manager.save_trained_model(model)
    return manager


def test_a_second_process_is_refused_until_the_first_is_dead(tmp_path, capsys):
    run = train(tmp_path).run
    before = sorted(str(path) for path in run.path.rglob("*"))
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(run.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout.readline() == "held\n"
        assert cli.main(["train", "--resume", str(run.path), "-n", "64"]) == 2
        assert "is being trained by another process" in capsys.readouterr().err
        assert sorted(str(path) for path in run.path.rglob("*")) == before
        holder.kill()
    assert train(tmp_path, resume=str(run.path), n_timesteps=64).run.path == run.path


def test_a_lock_ends_with_learning_or_with_its_owner(tmp_path):
    first = train(tmp_path)
    second = make(tmp_path, resume=str(first.run.path), n_timesteps=64)
    second.learn(second.setup_experiment())
    lock = RunLock(tmp_path)
    with pytest.raises(ConfigError, match="another process"):
        RunLock(tmp_path)
    del lock
    gc.collect()
    RunLock(tmp_path).release()


def test_a_broken_checkpoint_gives_way_to_the_one_before(tmp_path, caplog):
    run = train(tmp_path, save_freq=16).run
    old, new = (run.checkpoints / name for name in ("16", "32"))
    model = (new / "model.zip").read_bytes()
    for size in (0, 1000, len(model) - 200):
        (new / "model.zip").write_bytes(model[:size])
        assert latest_checkpoint(run) == old
    assert "Checkpoint 32 is passed over" in caplog.text
    (old / "state.json").write_text("{")
    with pytest.raises(ConfigError, match=r"no whole checkpoint to go on from.*model\.zip is not there, or broken"):
        latest_checkpoint(run)
    (new / "model.zip").write_bytes(model)
    assert latest_checkpoint(run) == new


def test_a_run_that_was_downloaded_is_not_gone_on_with(tmp_path, capsys):
    run = train(tmp_path).run
    write_origin(run.settings, Origin("me/ppo", "0", trusted=True))
    assert latest_checkpoint(run) == run.checkpoints / "32"
    write_origin(run.settings, Origin("me/ppo", "0", trusted=False))
    assert cli.main(["train", "--resume", str(run.path), "-n", "64"]) == 2
    assert "was downloaded, and to go on with a checkpoint is to run what its maker has put into it" in capsys.readouterr().err


def test_rewinding_lets_later_and_unfinished_checkpoints_go(tmp_path):
    run = train(tmp_path, save_freq=16).run
    (run.checkpoints / ".48.partial").mkdir()
    rewind(run, run.checkpoints / "16")
    assert [path.name for path in run.checkpoints.iterdir()] == ["16"]


def test_metrics_are_written_again_only_when_something_is_cut(tmp_path):
    path = tmp_path / "metrics.csv"
    path.write_text("step,x\n1,2\n2,3\n")
    before = path.stat().st_ino
    cut_metrics(path, 2)
    assert path.stat().st_ino == before
    cut_metrics(path, 1)
    assert path.read_text().split() == ["step,x", "1,2"]


@pytest.mark.parametrize("junk", [b"", b"junk", b"PK\x03\x04 and no more"])
def test_junk_in_place_of_evaluations_is_told_in_one_line(tmp_path, junk):
    (tmp_path / "evaluations.npz").write_bytes(junk)
    with pytest.raises(ConfigError, match=r"evaluations\.npz holds no evaluations: .+"):
        read_evaluations(tmp_path / "evaluations.npz")


def test_a_checkpoint_of_other_sizes_is_refused(tmp_path):
    run = train(tmp_path).run
    config = run.settings / "config.yml"
    config.write_text(config.read_text().replace("- 4", "- 5"))
    with pytest.raises(ConfigError, match=r"does not fit the run's hyperparameters.*size mismatch"):
        train(tmp_path, resume=str(run.path), n_timesteps=64)


class Unclosable(gym.Wrapper):
    """An env whose end fails."""

    def close(self):
        raise OSError("the simulator is gone")


class Exiting(gym.Wrapper):
    """An env that ends the whole process with itself."""

    def close(self):
        sys.exit("the simulator is gone")


@pytest.mark.parametrize("name", ["Unclosable", "Exiting"])
def test_an_env_that_cannot_be_closed_costs_no_model(name, tmp_path, caplog):
    manager = train(tmp_path, hyperparams={**ENTRY, "env_wrapper": [{f"{__name__}.{name}": {}}]})
    assert manager.run.model.exists()
    assert "An environment cannot be closed: " in caplog.text
    assert "the simulator is gone" in caplog.text


class Drawing(gym.Wrapper):
    """An env whose construction draws from the global generator."""

    def __init__(self, env):
        super().__init__(env)
        np.random.rand()


def test_an_evaluation_env_whose_construction_draws_changes_no_training(tmp_path):
    entry = {**ENTRY, "env_wrapper": [{f"{__name__}.Drawing": {}}]}
    runs = [train(tmp_path, hyperparams=entry, eval_freq=freq, n_eval_episodes=1) for freq in (-1, 16)]
    weights = [load_run(manager.run.path, device="cpu")[0].policy.state_dict() for manager in runs]
    assert all(torch.equal(weights[0][name], value) for name, value in weights[1].items())


def test_a_failed_start_leaves_the_user_s_own_folders(tmp_path):
    own = tmp_path / "own"
    own.mkdir()
    run_folder.remove(run_folder.claim(own / "made" / "too", "a2c", "CartPole-v1"))
    assert list(own.iterdir()) == []
    run_folder.remove(run_folder.claim(own, "a2c", "CartPole-v1"))
    assert own.is_dir()


def test_a_truncated_model_is_told_in_one_line(tmp_path):
    run = train(tmp_path).run
    whole = run.model.read_bytes()
    run.model.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ConfigError, match=r"CartPole-v1\.zip cannot be loaded as A2C: [^\n]+$"):
        load_run(run.path, device="cpu")


def test_what_a_constructor_refuses_is_told_in_one_line(tmp_path):
    with pytest.raises(ConfigError, match=r"^a2c on CartPole-v1: [^\n]+$"):
        make(tmp_path, hyperparams={**ENTRY, "policy": "CnnPolicy"}).setup_experiment()
    assert not (tmp_path / "logs").exists()


LIVE = """
from stable_baselines3.common.callbacks import CallbackList
entry = {entry!r}
entry |= {{"learning_rate": lambda progress: 0.001 * progress, "callback": [CallbackList([])]}}
hyperparams = {{"default": entry}}
"""


def test_a_run_of_functions_and_objects_is_played_and_gone_on_with(tmp_path, caplog):
    own = tmp_path / "own.py"
    own.write_text(LIVE.format(entry=ENTRY))
    run = train(tmp_path, hyperparams=None, config=str(own)).run.path
    model, env = load_run(run, device="cpu")
    assert model.predict(np.zeros((1, 4)))[0].shape == (1,)
    env.close()
    manager = train(tmp_path, hyperparams=None, config=str(own), resume=str(run), n_timesteps=64)
    assert manager.hyperparams.model_kwargs["learning_rate"](0.5) == 0.0005
    assert "Hyperparameters are read again from" in caplog.text
    with pytest.raises(ConfigError, match=r"(callback|learning_rate).*--conf-file, and the run had none"):
        make(tmp_path, hyperparams=None, resume=str(run)).setup_experiment()
    own.write_text(LIVE.format(entry={**ENTRY, "gamma": 0.9}))
    with pytest.raises(ConfigError, match="has other keys by now: gamma"):
        make(tmp_path, hyperparams=None, config=str(own), resume=str(run)).setup_experiment()


@pytest.mark.parametrize("closed", [True, False])
def test_a_process_without_a_console_gets_no_table(tmp_path, monkeypatch, closed):
    manager = make(tmp_path)
    model = manager.setup_experiment()
    stream = (tmp_path / "console").open("w")
    stream.close()
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", stream if closed else None)
        attach_sb3_logger(model, manager.run, verbose=1)
    assert [type(output).__name__ for output in model.logger.output_formats] == ["MetricsFile"]
    model.get_env().close()


def test_a_resume_away_from_the_algorithm_s_module_says_where_to_start(tmp_path):
    run = train(tmp_path).run
    with pytest.raises(ConfigError, match=r"no_such_module.*start --resume in the folder where the run was started"):
        ExperimentManager(None, "no_such_module:Own", "CartPole-v1", "logs", resume=str(run.path), **OPTIONS)
