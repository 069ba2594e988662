"""One trial in this process: what it reports, how it ends, and that it leaves no env open."""

import os
import signal

import gymnasium as gym
import numpy as np
import optuna
import pytest
from optuna.trial import TrialState
from studies import study_of

import tiny_envs
from lit_sb3_ray.errors import NonFiniteError
from lit_sb3_ray.experiment.evaluations import read_evaluations
from lit_sb3_ray.experiment.signals import SignalStop
from lit_sb3_ray.lit.stop import StopGuard
from lit_sb3_ray.tuning.trial import TrialRun, TrialStopped
from lit_sb3_ray.tuning.trial_maker import TrialMaker, packed

RETURN = 15.0
GIVEN = {"n_steps": 20}


class FragileEnv(tiny_envs.CountEnv):
    """TinyCount that counts the envs that are open, and may break, or give NaN, or signal this process, at a step."""

    opened = 0
    steps = 0
    trouble_at = 0
    trouble = None

    def __init__(self):
        super().__init__()
        FragileEnv.opened += 1

    def step(self, action):
        FragileEnv.steps += 1
        observation, reward, *rest = super().step(action)
        if FragileEnv.steps == FragileEnv.trouble_at:
            if isinstance(FragileEnv.trouble, int):
                os.kill(os.getpid(), FragileEnv.trouble)
            elif isinstance(FragileEnv.trouble, float):
                reward = FragileEnv.trouble
            else:
                raise ValueError("the joint is broken")
        return observation, reward, *rest

    def close(self):
        FragileEnv.opened -= 1


gym.register(id="TinyFragile-v0", entry_point=FragileEnv)


@pytest.fixture
def fragile():
    FragileEnv.opened = FragileEnv.steps = FragileEnv.trouble_at = 0
    FragileEnv.trouble = None
    yield FragileEnv
    assert FragileEnv.opened == 0, "envs were left open"


def manager_of(folder, env_id="TinyFragile-v0", **settings):
    return study_of(folder, env_id, **{"hyperparams": GIVEN, "n_timesteps": 40, "n_evaluations": 2, **settings})


def run_of(manager, marks=(20, 40), hyperparams=None, **where):
    made = TrialMaker.of(manager)(hyperparams or {}, manager.seed)
    return TrialRun(made, marks, SignalStop(StopGuard()), **where)


def weights(run):
    return np.concatenate([value.detach().numpy().ravel() for value in run.module.algorithm.policy.parameters()])


def test_it_trains_from_evaluation_to_evaluation(tmp_path, fragile):
    run = run_of(manager_of(tmp_path), folder=tmp_path / "kept")
    points = []
    while not run.done:
        points.append(run.advance())
    run.close()
    run.close()
    assert [(point.mark, point.num_timesteps, point.mean_reward, point.std_reward) for point in points] == [
        (20, 20, RETURN, 0.0),
        (40, 40, RETURN, 0.0),
    ]
    assert read_evaluations(tmp_path / "kept" / "evaluations.npz")["timesteps"] == [20, 40]


def test_a_trial_that_is_done_has_nothing_new_to_report(tmp_path, fragile):
    run = run_of(manager_of(tmp_path), folder=tmp_path / "kept")
    points = [run.advance() for _ in range(3)]
    run.close()
    assert points[1] == points[2]
    assert read_evaluations(tmp_path / "kept" / "evaluations.npz")["timesteps"] == [20, 40]


@pytest.mark.parametrize(("trouble", "error"), [(None, ValueError), (float("nan"), NonFiniteError)])
@pytest.mark.parametrize("step", [3, 43])
def test_what_goes_wrong_in_training_or_evaluation_comes_out_and_leaves_no_env_open(trouble, error, step, tmp_path, fragile):
    fragile.trouble, fragile.trouble_at = trouble, step
    study = optuna.create_study(direction="maximize")
    manager = manager_of(tmp_path, n_evaluations=1)
    with pytest.raises(error):
        manager.objective(study.ask())


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_objective_at_once(signum, tmp_path, fragile):
    fragile.trouble, fragile.trouble_at = int(signum), 3
    before = signal.getsignal(signum)
    study = optuna.create_study(direction="maximize")
    with pytest.raises(TrialStopped) as stopped:
        study.optimize(manager_of(tmp_path).objective, n_trials=2)
    assert isinstance(stopped.value, KeyboardInterrupt)
    assert stopped.value.signum == signum
    assert signal.getsignal(signum) is before
    assert fragile.steps < 60


def test_the_objective_obeys_the_pruner_of_one_s_own_study(tmp_path, fragile):
    study = optuna.create_study(direction="maximize", pruner=optuna.pruners.ThresholdPruner(lower=RETURN + 1))
    study.optimize(manager_of(tmp_path).objective, n_trials=1)
    (trial,) = study.trials
    assert (trial.state, trial.intermediate_values) == (TrialState.PRUNED, {20: RETURN})


def test_the_objective_is_what_was_asked_for(tmp_path):
    study = optuna.create_study(direction="maximize")
    study.enqueue_trial({"max_grad_norm": 1.0})
    settings = {"hyperparams": {"n_steps": 20, "callback": "study_envs.Worth"}, "n_timesteps": 100, "n_evaluations": 5}
    study.optimize(manager_of(tmp_path, "StudyWorth-v0", trial_objective="mean:2", **settings).objective, n_trials=1)
    values = list(study.trials[0].intermediate_values.values())
    assert study.best_value == pytest.approx((values[-2] + values[-1]) / 2, abs=1e-9)
    assert values[-2] != values[-1]


def test_it_goes_on_from_a_checkpoint_bit_for_bit(tmp_path):
    """Weights, the best model's score and the evaluations that were kept are those of a trial that was not broken off."""
    settings = {"hyperparams": {"n_steps": 20, "callback": "study_envs.Worth"}, "n_timesteps": 60}
    manager = manager_of(tmp_path, "StudyWorth-v0", **settings)
    whole = run_of(manager, (20, 40, 60), folder=tmp_path / "whole")
    expected = [whole.advance() for _ in range(3)]
    first = run_of(manager, (20, 40, 60), folder=tmp_path / "parts")
    first.advance()
    first.save(tmp_path / "checkpoint")
    first.advance()
    first.close()
    second = run_of(manager, (20, 40, 60), folder=tmp_path / "parts", checkpoint=tmp_path / "checkpoint")
    assert second.last == expected[0]
    assert [second.advance(), second.advance()] == expected[1:]
    assert second.done
    assert np.array_equal(weights(second), weights(whole))
    for run in (whole, second):
        run.close()
    kept, parts = (read_evaluations(tmp_path / name / "evaluations.npz") for name in ("whole", "parts"))
    assert kept == parts


def test_a_maker_goes_to_another_process_whole(tmp_path):
    """Its own class of manager, what was given, and the hook for the vectorised env."""
    manager = manager_of(tmp_path, env_kwargs={"length": 3})
    manager.vec_env_kwargs = {"x": 1}
    made = packed(TrialMaker.of(manager))({"gamma": 0.5}, 9)
    assert (made.seed, made.trial_hyperparams, made.vec_env_kwargs) == (9, {"gamma": 0.5}, {"x": 1})
    assert made.custom_hyperparams == GIVEN
    assert made.env_kwargs == {"length": 3}
    assert not made.optimize_hyperparameters
