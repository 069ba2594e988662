"""`--devices`: several learners do what one does with all their envs, and a run of theirs is a run like any other."""

from __future__ import annotations

import csv
import os
import pickle
import signal

import numpy as np
import pytest
import training_process as tp
from learner_processes import learner_pids
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.save_util import load_from_pkl
from vec.processes import ended_within

from lit_sb3_ray import ExperimentManager, load_run
from lit_sb3_ray.cli.main import main
from lit_sb3_ray.config.hyperparams import resolve
from lit_sb3_ray.errors import ConfigError, LearnerError
from lit_sb3_ray.experiment.devices import divide_gpus
from lit_sb3_ray.experiment.learner import Seat
from lit_sb3_ray.experiment.shares import LEARNING_TOGETHER, share
from lit_sb3_ray.vec.actor import Home

NET = {"net_arch": [8]}
SMALL = {"n_steps": 32, "batch_size": 32, "n_epochs": 2, "policy_kwargs": NET, "n_envs": 4}


def manager(folder, algo="ppo", env_id="TinyCount-v0", hyperparams=SMALL, **settings):
    given = {"n_timesteps": 512, "eval_freq": 200, "n_eval_episodes": 2, "seed": 3, "verbose": 0, "devices": 2}
    given |= {"device": "cpu", "vec_env_type": "dummy", "gym_packages": ("tiny_envs", "slow_envs")}
    return ExperimentManager(None, algo, env_id, str(folder), hyperparams=dict(hyperparams), **{**given, **settings})


def train(made):
    model = made.setup_experiment()
    made.learn(model)
    made.save_trained_model(model)
    return model


class Do(BaseCallback):
    """Does something at an env step."""

    def __init__(self, step, action):
        super().__init__()
        self.step, self.action, self.done = step, action, False

    def _on_step(self):
        if self.num_timesteps >= self.step and not self.done:
            self.done = True
            return self.action(self.model) is not False
        return True

    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        pass


# A run


@pytest.mark.usefixtures("ray_instance")
def test_a_run_of_two_is_counted_evaluated_and_written_as_one_run(tmp_path):
    hyperparams = {**SMALL, "normalize": True, "target_kl": 0.001, "learning_rate": 0.01}
    model = train(made := manager(tmp_path, hyperparams=hyperparams, save_freq=256))
    run = made.run.path
    assert model.num_timesteps == 512
    assert (model.n_envs, model.batch_size) == (2, 16)
    with np.load(run / "evaluations.npz") as file:
        assert file["timesteps"].tolist() == [200, 400]
    # Episodes of 5 steps in four envs, each with a file of its own, in the first learner's folder alone.
    assert sorted(path.name for path in run.glob("*.monitor.csv")) == [f"{index}.monitor.csv" for index in range(4)]
    lengths = [int(float(row["l"])) for path in run.glob("*.monitor.csv") for row in rows(path)]
    assert sum(lengths) == 500
    assert tp.checkpoints(run) == [256, 512]
    assert sorted(path.name for path in (run / "checkpoints" / "512").iterdir()) == [
        "best_model.zip",
        "best_model_vecnormalize.pkl",
        "learner_1.pkl",
        "model.zip",
        "state.json",
        "vecnormalize.pkl",
    ]
    assert not list(run.glob("checkpoints/.*"))
    assert [int(row["step"]) for row in tp.metrics(run)][-1] == 512
    # What is normalised has been seen by all: their steps, and the resets before the first.
    assert model.get_vec_normalize_env().obs_rms.count == pytest.approx(512 + 4, abs=0.01)
    loaded, env = load_run(run, device="cpu")
    assert isinstance(loaded, PPO)
    assert (loaded.num_timesteps, loaded.target_kl) == (512, 0.001)
    env.close()
    assert learner_pids() == set()


def rows(path):
    with path.open(newline="") as file:
        file.readline()
        return list(csv.DictReader(file))


@pytest.mark.usefixtures("ray_instance")
def test_the_same_seed_gives_the_same_run_and_another_number_of_learners_another(tmp_path):
    models = [train(manager(tmp_path / str(i), devices=n, eval_freq=-1)) for i, n in enumerate((2, 2, 1))]
    weights = [model.get_parameters() for model in models]
    assert tp.differences(weights[0], weights[1]) == []
    assert tp.differences(weights[0], weights[2]) != []


@pytest.mark.usefixtures("ray_instance")
def test_learners_may_have_their_envs_in_ray_actors(tmp_path):
    settings = {"vec_env_type": "ray", "env_cpus": 0.25, "envs_per_actor": 1, "eval_freq": -1}
    in_actors = train(manager(tmp_path / "ray", **settings)).get_parameters()
    here = train(manager(tmp_path / "here", eval_freq=-1)).get_parameters()
    assert tp.differences(in_actors, here) == []


@pytest.mark.usefixtures("ray_instance")
def test_what_changes_the_model_in_one_learner_alone_is_noticed(tmp_path):
    def change(model):
        for weight in model.policy.parameters():
            weight.data += 0.1

    made = manager(tmp_path, callbacks=[Do(200, change)])
    model = made.setup_experiment()
    with pytest.raises(LearnerError, match="weights have come apart"):
        made.learn(model)
    assert learner_pids() == set()


@pytest.mark.usefixtures("ray_instance")
def test_a_callback_of_the_hyperparameters_is_in_every_learner(tmp_path):
    """It changes the model in each, so that they do not come apart."""
    train(made := manager(tmp_path, hyperparams={**SMALL, "callback": "tiny_callbacks.Shift"}))
    assert tp.checkpoints(made.run.path) == [512]


@pytest.mark.usefixtures("ray_instance")
def test_a_killed_learner_ends_the_run_which_goes_on_from_its_checkpoint(tmp_path):
    def kill(model):
        (pid,) = learner_pids()
        os.kill(pid, signal.SIGKILL)

    made = manager(tmp_path, save_freq=128, n_timesteps=100_000, callbacks=[Do(300, kill)])
    model = made.setup_experiment()
    with pytest.raises(LearnerError, match=r"learner 1 .* has died: .*Go on with: lit-sb3-ray train --resume"):
        made.learn(model)
    assert tp.checkpoints(made.run.path) == [128, 256]
    resumed = manager(tmp_path, n_timesteps=512, resume=str(made.run.path))
    assert train(resumed).num_timesteps == 512


@pytest.mark.usefixtures("ray_instance")
def test_an_env_that_fails_in_another_learner_is_told(tmp_path, caplog):
    """The second learner's envs have other seeds, and one of them is not liked."""
    made = manager(tmp_path, env_id="TinyUnlucky-v0", env_kwargs={"unlucky": 3 + 2}, n_timesteps=10_000)
    model = made.setup_experiment()
    with pytest.raises(LearnerError, match=r"learner 1 .* has failed: ValueError: boom"):
        made.learn(model)
    assert learner_pids() == set()


@pytest.mark.usefixtures("ray_instance")
def test_inside_a_placement_group_learners_are_refused(tmp_path):
    import ray
    from ray.util.placement_group import placement_group, remove_placement_group
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

    @ray.remote(num_cpus=1)
    def inside(folder, hyperparams):
        from lit_sb3_ray import ExperimentManager
        from lit_sb3_ray.errors import ConfigError

        given = {"n_timesteps": 512, "eval_freq": -1, "vec_env_type": "dummy", "device": "cpu", "devices": 2}
        made = ExperimentManager(None, "ppo", "CartPole-v1", folder, hyperparams=hyperparams, **given)
        try:
            made.learn(made.setup_experiment())
        except ConfigError as error:
            return str(error)
        return None

    group = placement_group([{"CPU": 3}])
    try:
        strategy = PlacementGroupSchedulingStrategy(group, placement_group_capture_child_tasks=True)
        answer = ray.get(inside.options(scheduling_strategy=strategy).remote(str(tmp_path), SMALL))
    finally:
        remove_placement_group(group)
    assert "--devices 2 inside a trial" in answer


# Processes of their own


@pytest.fixture
def variables(ray_instance):
    import ray

    return {"RAY_ADDRESS": ray.get_runtime_context().gcs_address, "RAY_AUTH_MODE": "disabled"}


STEPS = ("--gym-packages", "slow_envs", "--seed", "5", "--vec-env", "dummy", "--eval-freq", "-1", "--devices", "2")
NETWORK = "policy_kwargs:dict(net_arch=[8])"
WORDS = {
    "ppo": (
        "--algo",
        "ppo",
        *STEPS,
        "-params",
        "n_steps:32",
        "batch_size:32",
        "n_epochs:1",
        NETWORK,
    ),
    "sac": (
        *("--algo", "sac", *STEPS, "-params", "learning_starts:40", "batch_size:16", "buffer_size:300", "train_freq:4"),
        *("gradient_steps:1", NETWORK, "noise_type:ornstein-uhlenbeck", "noise_std:0.2"),
    ),
}


def started(folder, words, variables):
    training = tp.start(folder, words, variables=variables)
    run = training.wait_until(lambda: next(iter(folder.glob("logs/*/*_1/0.monitor.csv")), None)).parent
    return training, run


@pytest.mark.parametrize("algo", WORDS)
def test_kill_9_after_a_checkpoint_and_a_stop_there_go_on_alike(algo, tmp_path, variables):
    words = (*WORDS[algo], "normalize:True", "n_envs:4", "--env", "Slow-v0", "--save-freq", "128", "-n", "384")
    ends = {"killed": (signal.SIGKILL, -signal.SIGKILL), "stopped": (signal.SIGTERM, 143)}
    found = {}
    for name, (signum, code) in ends.items():
        training = tp.start(tmp_path / name, words, [tp.SignalAt(signum, 250)], variables=variables)
        assert training.wait() == code, training.log.read_text()
        run = tp.only_run(tmp_path / name)
        if name == "stopped":
            last = tp.checkpoints(run)[-1]
            for later in [step for step in tp.checkpoints(run) if step > 128]:
                tp.shutil.rmtree(run / "checkpoints" / str(later))
            assert last >= 128
        assert tp.checkpoints(run) == [128]
        tp.resume(run, variables=variables)
        found[name] = tp.result(run)
        learner = run / "checkpoints" / str(tp.checkpoints(run)[-1])
        found[name]["own"] = [pickle.loads((learner / "learner_1.pkl").read_bytes())["rng"]]
        found[name]["buffers"] = [load_from_pkl(path) for path in sorted(learner.glob("replay_buffer*"))]
    assert tp.differences(found["killed"], found["stopped"]) == []
    assert found["killed"]["checkpoint"]["counters"]["num_timesteps"] >= 384
    assert len(found["killed"]["buffers"]) == (0 if algo == "ppo" else 2)


@pytest.mark.parametrize(
    ("signum", "length", "seconds"),
    [(signal.SIGINT, 32, 0.0), (signal.SIGTERM, 20_000, 0.0), (signal.SIGTERM, 64, 0.4)],
    ids=["short iterations", "long rollouts", "slow steps"],
)
def test_a_signal_stops_all_learners_within_five_seconds(signum, length, seconds, tmp_path, variables):
    steps = ("--env", "Slow-v0", "--env-kwargs", f"seconds:{seconds}", "fast:70", "-n", "100000000")
    words = (*WORDS["ppo"], *steps, "-params", f"n_steps:{length}", "n_envs:2", "normalize:True")
    training, run = started(tmp_path, words, variables)
    training.wait_until(lambda: len(tp.episodes(run)) > 10 or (length > 64 and learner_pids()))
    pids = learner_pids()
    begun = tp.time.monotonic()
    training.send(signum)
    assert training.wait() == 128 + signum, training.log.read_text()
    assert tp.time.monotonic() - begun < 5
    assert pids
    assert all(ended_within(pid, 5) for pid in pids)
    (at,) = tp.checkpoints(run)[-1:]
    assert at % (2 * length) == 0
    assert at == 0 or (run / "checkpoints" / str(at) / "learner_1.pkl").stat().st_size > 0


def test_the_command_says_which_learner_is_lost_and_ends_with_1(tmp_path, variables):
    words = (*WORDS["ppo"], "n_envs:2", "--env", "Slow-v0", "-n", "100000000", "--save-freq", "64")
    training, run = started(tmp_path, words, variables)
    training.wait_until(lambda: tp.checkpoints(run))
    (pid,) = learner_pids()
    os.kill(pid, signal.SIGKILL)
    assert training.wait(30) == 1
    told = [line for line in training.log.read_text().splitlines() if line.startswith("lit-sb3-ray: error:")]
    assert len(told) == 1
    assert f"learner 1 (process {pid}) has died" in told[0]


def test_after_kill_9_of_the_first_learner_the_others_end(tmp_path, variables):
    words = (*WORDS["ppo"], "n_envs:2", "--env", "Slow-v0", "-n", "100000000", "--save-freq", "64")
    training, run = started(tmp_path, words, variables)
    training.wait_until(lambda: tp.checkpoints(run))
    pids = learner_pids()
    training.kill()
    assert pids
    assert all(ended_within(pid, 20) for pid in pids)


# What is refused


@pytest.mark.parametrize(
    ("algo", "hyperparams", "settings", "told"),
    [
        ("ars", {"n_delta": 2}, {}, "ARS cannot be trained by several learners; these can: A2C"),
        ("trpo", {}, {}, "TRPO cannot be trained by several learners"),
        ("crossq", {}, {"env_id": "Pendulum-v1"}, "CrossQ cannot be trained by several learners"),
        ("ppo", {"n_envs": 3}, {}, "3 envs cannot be divided among 2 learners; give --n-envs 4"),
        ("ppo", SMALL, {"devices": 3}, "4 envs cannot be divided among 3 learners; give --n-envs 6"),
        ("ppo", {**SMALL, "batch_size": 33}, {}, "batch_size 33 cannot be divided among 2 learners"),
        ("td3", {"train_freq": [1, "episode"], "n_envs": 2}, {}, "train_freq is to be in steps"),
        ("ppo", SMALL, {"devices": 0}, "devices must be a whole number, 1 or more, not 0"),
        ("ppo", SMALL, {"optimize_hyperparameters": True}, "--devices 2 with a study"),
    ],
)
def test_what_several_learners_cannot_do_is_refused_before_anything_is_written(algo, hyperparams, settings, told, tmp_path):
    with pytest.raises(ConfigError, match=told):
        manager(tmp_path / "logs", algo, hyperparams={"policy": "MlpPolicy", **hyperparams}, **settings).setup_experiment()
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("ray_instance")
@pytest.mark.parametrize(
    ("device", "told"),
    [("cuda:1", "each learner has its own|cuda"), ("cuda", "each learner needs a GPU of its own|cuda")],
)
def test_devices_that_are_not_there_are_refused(device, told, tmp_path):
    with pytest.raises(ConfigError, match=told):
        manager(tmp_path / "logs", device=device).setup_experiment()


def test_the_command_refuses_too_and_a_dry_run_tells(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["train", "--dry-run", "--devices", "2", "--seed", "1"]) == 0
    told = capsys.readouterr().out
    assert "learners: 2" in told
    assert "training: 4" in told
    assert main(["train", "--devices", "3", "--seed", "1"]) == 2
    assert "cannot be divided among 3 learners" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


# Shares


def entry(algo, **values):
    return resolve({"policy": "MlpPolicy", "n_timesteps": 100, **values}, algo, "test")


def test_shares_come_to_what_one_has():
    ppo = share(entry("ppo", batch_size=64, n_steps=128), 8, 4)
    assert (ppo.n_envs, ppo.model_kwargs["batch_size"], ppo.model_kwargs["n_steps"]) == (2, 16, 128)
    dqn = share(entry("dqn", buffer_size=1000, learning_starts=100), 2, 2)
    kwargs = dqn.model_kwargs
    assert (kwargs["batch_size"], kwargs["buffer_size"], kwargs["learning_starts"]) == (16, 500, 100)
    assert kwargs["target_update_interval"] == 5000
    # SAC counts that in gradient steps, of which all learners make the same.
    sac = share(entry("sac", target_update_interval=2), 2, 2)
    assert sac.model_kwargs["target_update_interval"] == 2
    assert share(entry("a2c"), 4, 2).model_kwargs == entry("a2c").model_kwargs


def test_one_learner_has_it_all():
    one = share(entry("ppo", batch_size=63), 3, 1)
    assert (one.n_envs, one.model_kwargs) == (3, {"batch_size": 63})


def test_every_algorithm_named_can_be_resolved():
    names = {"A2C": "a2c", "MaskablePPO": "ppo_mask", "PPO": "ppo", "RecurrentPPO": "ppo_lstm", "DDPG": "ddpg", "DQN": "dqn"}
    names |= {"QRDQN": "qrdqn", "SAC": "sac", "TD3": "td3", "TQC": "tqc"}
    assert set(names) == set(LEARNING_TOGETHER)
    for name, algo in names.items():
        assert entry(algo).algo_class.__name__ == name
        assert share(entry(algo), 2, 2).n_envs == 1


def seat(node, *gpus):
    return Seat(Home(node, 1, 2), "127.0.0.1", gpus)


def test_each_learner_has_a_gpu_of_its_own():
    assert divide_gpus([seat("here", "1"), seat("here", "2")], "here", ["0", "1", "2"]) == ["1", "2"]
    # Ray has given away the one that the first learner is on.
    assert divide_gpus([seat("here", "0"), seat("there", "0")], "here", ["0", "1"]) == ["1", "0"]
    # A job that was given one sees that one alone.
    assert divide_gpus([seat("here", "0")], "here", ["3"]) == ["0"]
    with pytest.raises(ConfigError, match="no GPU left"):
        divide_gpus([seat("here", "0"), seat("here", "1")], "here", ["0", "1"])
