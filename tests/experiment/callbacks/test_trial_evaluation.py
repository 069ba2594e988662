"""TrialEvalCallback in a study of one's own, and SaveVecNormalizeCallback through a file."""

from __future__ import annotations

import optuna
import pytest
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize

import tiny_envs  # noqa: F401 (registers its environments)
from lit_sb3_ray import ExperimentManager
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.experiment.callbacks import SaveVecNormalizeCallback, TrialEvalCallback


@pytest.mark.parametrize(("lower", "state", "reported"), [(0.0, "COMPLETE", 4), (100.0, "PRUNED", 1)])
def test_a_trial_hears_of_every_evaluation_and_may_end_the_training(lower, state, reported):
    callbacks = []

    def objective(trial):
        model = PPO("MlpPolicy", "TinyCount-v0", n_steps=16, batch_size=16, device="cpu", seed=0)
        env = make_vec_env("TinyCount-v0", 1)
        callbacks.append(TrialEvalCallback(env, trial, n_eval_episodes=2, eval_freq=16))
        model.learn(64, callbacks[-1])
        if callbacks[-1].is_pruned:
            raise optuna.TrialPruned
        return callbacks[-1].last_mean_reward

    study = optuna.create_study(direction="maximize", pruner=optuna.pruners.ThresholdPruner(lower=lower))
    study.optimize(objective, n_trials=1)
    (trial,) = study.trials
    assert trial.state.name == state
    # Five steps pay 1 + 2 + 3 + 4 + 5.
    assert trial.intermediate_values == dict.fromkeys(range(1, reported + 1), 15.0)
    assert callbacks[0].is_pruned is (state == "PRUNED")


def test_statistics_are_saved_where_a_file_says(tmp_path):
    saved = {"rl_zoo3.callbacks.SaveVecNormalizeCallback": {"save_freq": 20, "save_path": str(tmp_path), "name_prefix": "s"}}
    entry = {"policy": "MlpPolicy", "n_timesteps": 64, "n_steps": 16, "batch_size": 16, "callback": saved, "normalize": True}
    (tmp_path / "own.py").write_text(f"hyperparams = {{'TinyCount-v0': {entry!r}}}")
    options = {"eval_freq": -1, "verbose": 0, "device": "cpu", "config": str(tmp_path / "own.py")}
    manager = ExperimentManager(None, "ppo", "TinyCount-v0", str(tmp_path / "logs"), **options)
    model = manager.setup_experiment()
    manager.learn(model)
    assert sorted(path.name for path in tmp_path.glob("s_*.pkl")) == [f"s_{step}_steps.pkl" for step in (20, 40, 60)]
    loaded = VecNormalize.load(str(tmp_path / "s_40_steps.pkl"), make_vec_env("TinyCount-v0", 1))
    # The reset before the first step counts, too.
    assert round(loaded.obs_rms.count) == 41


def test_statistics_that_cannot_be_saved_are_told(tmp_path):
    (tmp_path / "file").write_text("")
    callback = SaveVecNormalizeCallback(1, str(tmp_path / "file" / "folder"))
    with pytest.raises(ConfigError, match=r"save_path of SaveVecNormalizeCallback '.*folder' cannot be written"):
        callback.init_callback(PPO("MlpPolicy", "TinyCount-v0", device="cpu"))
