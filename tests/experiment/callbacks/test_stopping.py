"""SB3's stop callbacks, named in a file, end training by the run's own evaluations."""

from __future__ import annotations

import pytest

import tiny_envs  # noqa: F401 (registers its environments)
from lit_sb3_ray import ExperimentManager
from lit_sb3_ray.cli import main as cli
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.experiment.evaluations import read_evaluations

HOME = "stable_baselines3.common.callbacks"
THRESHOLD, PLATEAU = f"{HOME}.StopTrainingOnRewardThreshold", f"{HOME}.StopTrainingOnNoModelImprovement"
EPISODES = f"{HOME}.StopTrainingOnMaxEpisodes"


def trained(folder, callback, **options):
    """Trains where every evaluation gives a return of 15, since five steps pay 1 + 2 + 3 + 4 + 5."""
    entry = {"policy": "MlpPolicy", "n_timesteps": 320, "n_steps": 16, "batch_size": 16, "callback": callback}
    (folder / "own.py").write_text(f"hyperparams = {{'TinyCount-v0': {entry!r}}}")
    options = {"eval_freq": 32, "n_eval_episodes": 2, "verbose": 0, "device": "cpu", "seed": 1, **options}
    manager = ExperimentManager(None, "ppo", "TinyCount-v0", str(folder / "logs"), config=str(folder / "own.py"), **options)
    model = manager.setup_experiment()
    manager.learn(model)
    return manager


@pytest.mark.parametrize(
    ("callback", "evaluations"),
    [
        ({THRESHOLD: {"reward_threshold": 15}}, [32]),
        ({THRESHOLD: {"reward_threshold": 15.5}}, [32 * count for count in range(1, 11)]),
        # The first is a new best, and three more are one too many.
        ({PLATEAU: {"max_no_improvement_evals": 2}}, [32, 64, 96, 128]),
        ([{PLATEAU: {"max_no_improvement_evals": 3}}, {PLATEAU: {"max_no_improvement_evals": 1}}], [32, 64, 96]),
        (
            [
                {PLATEAU: {"max_no_improvement_evals": 2}},
                {THRESHOLD: {"reward_threshold": 10}},
                {EPISODES: {"max_episodes": 50}},
            ],
            [32],
        ),
        ([{PLATEAU: {"max_no_improvement_evals": 9}}, {EPISODES: {"max_episodes": 14}}], [32, 64]),
    ],
)
def test_training_ends_by_its_evaluations(callback, evaluations, tmp_path):
    manager = trained(tmp_path, callback)
    assert read_evaluations(manager.run.evaluations)["timesteps"] == evaluations


def test_a_plateau_is_counted_over_a_resume(tmp_path):
    run = trained(tmp_path, {PLATEAU: {"max_no_improvement_evals": 3}}, n_timesteps=64).run
    options = {"resume": str(run.path), "n_timesteps": 320, "eval_freq": 32, "n_eval_episodes": 2, "verbose": 0}
    resumed = ExperimentManager(None, "ppo", "TinyCount-v0", str(tmp_path / "logs"), **options)
    resumed.learn(resumed.setup_experiment())
    assert read_evaluations(run.evaluations)["timesteps"] == [32, 64, 96, 128, 160]


def test_without_evaluations_it_is_refused_and_nothing_is_left(tmp_path, capsys):
    with pytest.raises(ConfigError, match="StopTrainingOnRewardThreshold ends training by its evaluations"):
        trained(tmp_path, {THRESHOLD: {"reward_threshold": 15}}, eval_freq=-1)
    assert list(tmp_path.glob("logs/*/*")) == []
    words = ["train", "--env", "CartPole-v1", "-f", str(tmp_path / "cli"), "--eval-freq", "-1", "-n", "64"]
    assert cli.main([*words, "-params", f"callback:{{'{PLATEAU}': {{'max_no_improvement_evals': 1}}}}"]) == 2
    assert "--eval-freq" in capsys.readouterr().err
