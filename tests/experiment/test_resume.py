"""`--resume`: a run that was killed goes on from its last checkpoint exactly as one that was stopped there."""

import itertools
import random
import shutil
import signal
import zipfile
from pathlib import Path

import numpy as np
import pytest
import pytorch_lightning as pl
import training_process as tp
from stable_baselines3.common.save_util import load_from_pkl
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from lit_sb3_ray import ExperimentManager, load_run
from lit_sb3_ray.experiment.checkpoints import latest_checkpoint
from lit_sb3_ray.experiment.evaluations import read_evaluations
from lit_sb3_ray.experiment.run_folder import open_run
from lit_sb3_ray.lit.checkpoint import read_state
from lit_sb3_ray.lit.evaluation import evaluate, evaluation_seed

NET = "policy_kwargs:dict(net_arch=[16])"
PENDULUM = ("--env", "Pendulum-v1", "--env-kwargs", "max_episode_steps:20", "--eval-episodes", "2", "--seed", "7")
PPO = (
    *("--algo", "ppo", *PENDULUM, "--n-envs", "2", "-n", "2048", "--save-freq", "256", "--eval-freq", "200"),
    *("-params", "normalize:True", "n_steps:32", "batch_size:32", "n_epochs:2", "learning_rate:lin_0.001", NET),
    *("clip_range:lin_0.2",),
)
SAC = (
    *("--algo", "sac", *PENDULUM, "-n", "800", "--save-freq", "100", "--eval-freq", "150", "--log-interval", "1"),
    *("-params", "learning_starts:50", "train_freq:4", "gradient_steps:2", "buffer_size:500", "batch_size:32", NET),
)
OFF = ("learning_starts:20", "buffer_size:300", "batch_size:16", NET)
SHORT = ("--env", "Pendulum-v1", "--env-kwargs", "max_episode_steps:20", "-params")
CARTPOLE = ("--env", "CartPole-v1", "-params")
ALGORITHMS = {
    "a2c": (*CARTPOLE, "n_steps:20", "n_envs:2", NET),
    "ars": (
        "--env-kwargs",
        "max_episode_steps:10",
        *CARTPOLE,
        "n_delta:2",
        "n_envs:1",
        "normalize:dict(norm_obs=True,norm_reward=False)",
    ),
    "crossq": (*SHORT, *OFF),
    "ddpg": (*SHORT, *OFF, "noise_type:ornstein-uhlenbeck", "noise_std:0.3"),
    "dqn": (*CARTPOLE, *OFF, "n_steps:3", "train_freq:4", "gradient_steps:1", "target_update_interval:50"),
    "ppo_lstm": (
        *(*CARTPOLE, "n_steps:20", "n_envs:2", "batch_size:20", "n_epochs:2"),
        "policy_kwargs:dict(net_arch=[16],lstm_hidden_size=8)",
    ),
    "qrdqn": (
        *(*CARTPOLE, *OFF, "train_freq:4", "gradient_steps:1", "optimize_memory_usage:True"),
        "replay_buffer_kwargs:dict(handle_timeout_termination=False)",
    ),
    "sac": (
        *("--env", "TinyGoal-v0", "--gym-packages", "tiny_envs", "-params", *OFF, "policy:MultiInputPolicy"),
        *("replay_buffer_class:HerReplayBuffer", "replay_buffer_kwargs:dict(n_sampled_goal=2)"),
    ),
    "td3": (*SHORT, *OFF, "noise_type:normal", "noise_std:0.1", "train_freq:[1,'episode']"),
    "tqc": (*SHORT, *OFF, "use_sde:True", "train_freq:8", "gradient_steps:2"),
    "trpo": (*CARTPOLE, "n_steps:40", "n_envs:1", "batch_size:40", NET),
}
# Goes through no code of its own that another does not.
ALIKE = ("a2c", "crossq", "ddpg", "tqc", "trpo")


def stop_at(folder, words, step):
    """Trains until a SIGTERM in the rollout that ends at an env step, or at the first boundary after it."""
    training = tp.start(folder, words, [tp.SignalAt(signal.SIGTERM, step)])
    assert training.wait() == 143, training.log.read_text()
    return tp.only_run(folder)


def assert_every_step_once(run, n_envs, total, stops, eval_freq, length=20):
    evaluations = read_evaluations(run / "evaluations.npz")
    assert evaluations["timesteps"] == list(range(eval_freq, total + 1, eval_freq))
    steps = [int(row["step"]) for row in tp.metrics(run)]
    assert steps == sorted(set(steps))
    # Episodes in progress at a stop start anew, and so leave no row.
    spans = [(late - early) // n_envs for early, late in itertools.pairwise([0, *stops, total])]
    assert len(tp.episodes(run)) == n_envs * sum(span // length for span in spans)


@pytest.mark.parametrize("point", range(3))
@pytest.mark.parametrize(
    ("words", "n_envs", "total", "eval_freq"), [(PPO, 2, 2048, 200), (SAC, 1, 800, 150)], ids=["ppo", "sac"]
)
def test_a_killed_run_goes_on_like_one_stopped_at_its_checkpoint(words, n_envs, total, eval_freq, point, tmp_path):
    share = random.Random(f"{words[1]} {point}").uniform(0.15, 0.7)
    killed = tp.start(tmp_path / "killed", words)
    run = killed.wait_until(lambda: next((tmp_path / "killed").glob("logs/*/*_1"), None))
    killed.wait_until(lambda: tp.checkpoints(run) and len(tp.episodes(run)) >= share * total / 20)
    killed.kill()
    checkpoint = int(latest_checkpoint(open_run(run)).name)
    stopped = stop_at(tmp_path / "stopped", words, checkpoint - 2 * n_envs)
    assert tp.checkpoints(stopped)[-1] == checkpoint
    results = [tp.result(tp.resume(path)) for path in (run, stopped)]
    assert tp.differences(*results) == []
    assert results[0]["final"]["counters"]["num_timesteps"] == total
    assert_every_step_once(run, n_envs, total, [checkpoint], eval_freq)
    evaluations = read_evaluations(run / "evaluations.npz")
    (state,) = (item["state"] for item in results[0]["state"]["callbacks"] if item["class"] == "EvaluationCallback")
    assert state["best_mean_reward"] == max(np.mean(evaluations["results"], axis=1))


@pytest.mark.parametrize("algo", [pytest.param(name, marks=pytest.mark.heavy if name in ALIKE else ()) for name in ALGORITHMS])
def test_every_kind_of_algorithm_goes_on(algo, tmp_path):
    common = ("--algo", algo, "-n", "240", "--eval-freq", "-1", "--save-freq", "80", "--log-interval", "1", "--seed", "3")
    words = (*common, *ALGORITHMS[algo])
    killed = tp.start(tmp_path / "killed", words, [tp.SignalAt(signal.SIGKILL, 170)])
    assert killed.wait() == -signal.SIGKILL, killed.log.read_text()
    run = tp.only_run(tmp_path / "killed")
    checkpoint = tp.checkpoints(run)[-1]
    stopped = stop_at(tmp_path / "stopped", words, checkpoint)
    assert tp.checkpoints(stopped)[-1] == checkpoint
    before = tp.weights(run / "checkpoints" / str(checkpoint) / "model.zip")
    results = [tp.result(tp.resume(path)) for path in (run, stopped)]
    assert tp.differences(*results) == []
    assert results[0]["final"]["counters"]["num_timesteps"] >= 240
    assert tp.differences(results[0]["final"]["parameters"], before["parameters"]) != []


CRASHING = (*PPO, "-n", "448", "--save-freq", "128", "--eval-freq", "96", "--keep-checkpoints", "1")


def photographs(folder):
    """The run folders photographed, in order of time."""
    return [tp.only_run(path) for path in sorted(folder.iterdir(), key=lambda path: int(path.name))]


def assert_whole(run):
    """The run's last checkpoint, whose files and those of the run beside it can be read."""
    checkpoint = latest_checkpoint(open_run(run))
    assert int(checkpoint.name) == read_state(checkpoint)["num_timesteps"]
    for model in [*run.glob("*.zip"), *checkpoint.glob("*.zip")]:
        assert zipfile.ZipFile(model).testzip() is None
    for statistics in [*run.glob("*.pkl"), *checkpoint.glob("*.pkl"), *run.glob("Pendulum-v1/*.pkl")]:
        load_from_pkl(statistics)
    assert len(list(checkpoint.glob("best_model*"))) == 2
    evaluations = read_evaluations(run / "evaluations.npz")
    assert evaluations["timesteps"] == [96 * (i + 1) for i in range(len(evaluations["results"]))]
    assert {int(row["step"]) % 32 for row in tp.metrics(run)} == {0}
    return int(checkpoint.name)


@pytest.fixture(scope="module")
def crashes(tmp_path_factory):
    """What `kill -9` would leave before each change in the run folder, and what going on from each checkpoint comes to."""
    folder = tmp_path_factory.mktemp("crashes")
    assert tp.start(folder / "run", CRASHING, photographs=folder / "at").wait() == 0
    found = photographs(folder / "at")
    by_checkpoint = {}
    for run in found:
        by_checkpoint.setdefault(assert_whole(run), []).append(run)
    assert sorted(by_checkpoint) == [128, 256, 384, 448]
    results = {}
    for checkpoint, runs in by_checkpoint.items():
        some = random.Random(checkpoint).sample(runs, 3)
        results[checkpoint], *others = [tp.result(tp.resume(run)) for run in some]
        assert [tp.differences(results[checkpoint], other) for other in others] == [[], []]
        assert not list(some[0].glob(".*.partial*")) + list(some[0].glob("checkpoints/.*"))
    return len(found), results


def test_a_crash_at_any_moment_leaves_a_whole_run_to_go_on_with(crashes):
    """One checkpoint is kept: at every change of a file it or the next one is whole, and so are all other files."""
    count, results = crashes
    assert count > 60
    assert tp.differences(results[128], results[256]) != []


def test_a_kill_between_two_files_of_a_checkpoint_loses_nothing(crashes, tmp_path):
    count, results = crashes
    point = random.Random(1).randrange(count)
    assert tp.start(tmp_path, CRASHING, killed_at=point).wait() == -signal.SIGKILL
    run = tp.only_run(tmp_path)
    checkpoint = assert_whole(run)
    assert tp.differences(results[checkpoint], tp.result(tp.resume(run))) == []


def test_a_crash_while_a_run_is_put_back_to_its_checkpoint_loses_nothing(crashes, tmp_path):
    results = crashes[1]
    killed = tp.start(tmp_path / "run", CRASHING, [tp.SignalAt(signal.SIGKILL, 220)])
    assert killed.wait() == -signal.SIGKILL
    run = tp.only_run(tmp_path / "run")
    words = ["--resume", str(run)]
    assert tp.start(tmp_path / "run", words, photographs=tmp_path / "at").wait() == 0
    early = [run for run in photographs(tmp_path / "at") if tp.checkpoints(run) == [128]]
    assert len(early) > 20
    for crashed in [early[0], *random.Random(2).sample(early, 3)]:
        assert assert_whole(crashed) == 128
        assert tp.differences(results[128], tp.result(tp.resume(crashed))) == []


def test_resume_with_a_new_total_follows_the_schedules_of_that_total(tmp_path):
    run = tp.train(tmp_path, [*PPO, "-n", "256", "--save-freq", "-1", "--eval-freq", "256"])
    before = tp.weights(run / "Pendulum-v1.zip")
    # The first figures after the checkpoint are those of the last update before it.
    pending = [row["train/learning_rate"] for row in tp.metrics(run) if row["train/learning_rate"]]
    tp.resume(run, "-n", "512")
    assert_every_step_once(run, 2, 512, [256], 256)
    rates = {int(row["step"]): float(row["train/learning_rate"]) for row in tp.metrics(run) if row["train/learning_rate"]}
    assert len(pending) == 3
    expected = {step: 0.001 * (1 - (step - 64) / (256 if step <= 320 else 512)) for step in range(128, 513, 64)}
    assert rates == pytest.approx(expected, abs=1e-12)
    after = tp.weights(run / "Pendulum-v1.zip")
    assert after["counters"]["_n_updates"] == 2 * before["counters"]["_n_updates"]
    # The run's total is the new one from now on, and nothing is left to do.
    result, files = tp.result(run), sorted(path.name for path in run.rglob("*"))
    tp.resume(run)
    assert tp.differences(result, tp.result(run)) == []
    assert sorted(path.name for path in run.rglob("*")) == files


def test_no_step_is_twice_in_tensorboard_or_in_the_csv_logger(tmp_path):
    words = [*PPO, "-n", "768", "--logger", "tensorboard", "csv"]
    killed = tp.start(tmp_path, words, [tp.SignalAt(signal.SIGKILL, 700)])
    assert killed.wait() == -signal.SIGKILL
    run = tp.resume(tp.only_run(tmp_path))
    (folder,) = run.glob("tensorboard/*")
    board = EventAccumulator(str(folder)).Reload()
    for tag, column in (("rollout/ep_rew_mean", "rollout/ep_rew_mean"), ("eval/mean_reward", "eval/mean_reward")):
        expected = [(int(row["step"]), float(row[column])) for row in tp.metrics(run) if row[column]]
        events = [(event.step, event.value) for event in board.Scalars(tag)]
        assert [step for step, _ in events] == [step for step, _ in expected]
        assert [value for _, value in events] == pytest.approx([value for _, value in expected], rel=1e-6)
    first, second = [tp.read_csv(run / "csv" / f"version_{number}" / "metrics.csv") for number in range(2)]
    assert int(first[-1]["step"]) == 512 < int(second[0]["step"])
    assert [int(line["step"]) for line in first + second] == [int(row["step"]) for row in tp.metrics(run)]


def test_a_moved_run_goes_on_where_it_is(tmp_path):
    run = tp.train(tmp_path / "here", [*PPO, "-n", "128", "--logger", "tensorboard"])
    moved = tmp_path / "there" / "logs" / "ppo" / run.name
    shutil.copytree(run, moved)
    before = {path: path.stat().st_mtime_ns for path in run.rglob("*")}
    tp.resume(moved, "-n", "256")
    assert {path: path.stat().st_mtime_ns for path in run.rglob("*")} == before
    assert len(list(moved.glob("tensorboard/*"))) == 1


def test_starts_at_the_same_moment_do_not_share_a_run_folder(tmp_path):
    words = ["--algo", "a2c", *PENDULUM, "-n", "20", "--eval-freq", "-1"]
    for training in [tp.start(tmp_path, words) for _ in range(4)]:
        assert training.wait() == 0, training.log.read_text()
    runs = sorted(tmp_path.glob("logs/a2c/*"))
    assert [run.name for run in runs] == [f"Pendulum-v1_{number}" for number in range(1, 5)]
    assert all(tp.checkpoints(run) for run in runs)


def test_d1_resume_continues_counter_exploration_and_schedule(tmp_path):
    words = (
        *(
            "--algo",
            "dqn",
            "--env",
            "CartPole-v1",
            "-n",
            "800",
            "--save-freq",
            "200",
            "--eval-freq",
            "-1",
            "--log-interval",
            "1",
        ),
        *(
            "--seed",
            "1",
            "-params",
            "learning_starts:50",
            "exploration_fraction:0.5",
            "exploration_final_eps:0.1",
            "n_steps:3",
        ),
        *("learning_rate:lin_0.001", "train_freq:4", "gradient_steps:1", "buffer_size:2000", NET),
    )
    killed = tp.start(tmp_path, words, [tp.SignalAt(signal.SIGKILL, 330)])
    assert killed.wait() == -signal.SIGKILL
    run = tp.only_run(tmp_path)
    assert tp.checkpoints(run) == [200]
    tp.resume(run, "-n", "1200")
    rows = tp.metrics(run)
    for row in rows:
        total = 800 if int(row["step"]) <= 200 else 1200
        progress = int(row["step"]) / total
        assert float(row["rollout/exploration_rate"]) == pytest.approx(max(0.1, 1 - 0.9 * progress / 0.5), abs=1e-9)
        if row["train/learning_rate"]:
            assert float(row["train/learning_rate"]) == pytest.approx(0.001 * (1 - progress), abs=1e-5)
    steps = [int(row["step"]) for row in rows]
    assert steps == sorted(set(steps))
    assert min(step for step in steps if step > 200) < 300
    final = tp.weights(run / "CartPole-v1.zip")["counters"]
    assert final["num_timesteps"] == 1200
    assert final["_n_updates"] == (1200 - 50) // 4 + (1 if 50 % 4 else 0)
    assert final["_episode_num"] == len(tp.episodes(run))
    # The episode that the kill broke off ends in the buffer too: no return over three steps goes on into the next one.
    buffer = load_from_pkl(run / "checkpoints" / "1200" / "replay_buffer.pkl")
    assert buffer["pos"] == 1200
    assert buffer["timeouts"][199] or buffer["dones"][199]


def test_d2_the_replay_buffer_goes_on(tmp_path):
    killed = tp.start(tmp_path, [*SAC, "-n", "400"], [tp.SignalAt(signal.SIGKILL, 250)])
    assert killed.wait() == -signal.SIGKILL
    run = tp.only_run(tmp_path)
    before = load_from_pkl(run / "checkpoints" / "200" / "replay_buffer.pkl")
    assert before["pos"] == 200
    tp.resume(run)
    after = load_from_pkl(run / "checkpoints" / "400" / "replay_buffer.pkl")
    assert after["pos"] == 400
    for name in ("observations", "next_observations", "actions", "rewards", "dones"):
        assert np.array_equal(after[name][:200], before[name][:200])
        assert np.isfinite(after[name][200:400]).all()
    # The resumed run does not play the same episodes again.
    assert len(np.unique(after["observations"][:400], axis=0)) == 400


@pytest.fixture(scope="module")
def normalized_run(tmp_path_factory) -> Path:
    return tp.train(tmp_path_factory.mktemp("normalized"), [*PPO, "-n", "1024", "--keep-checkpoints", "9"])


def test_d3_each_model_has_the_statistics_of_its_moment(normalized_run, tmp_path):
    seen = []
    for step in tp.checkpoints(normalized_run):
        kept = load_from_pkl(normalized_run / "checkpoints" / str(step) / "vecnormalize.pkl")
        model, env = load_run(normalized_run, step, device="cpu")
        assert tp.differences(vars(env.obs_rms), vars(kept.obs_rms)) == []
        assert not env.training
        seen.append(float(env.obs_rms.count))
        saved = tp.weights(normalized_run / "checkpoints" / str(step) / "model.zip")["parameters"]
        assert tp.differences(model.get_parameters()["policy"], saved["policy"]) == []
        env.close()
    assert seen == sorted(set(seen))
    assert len(seen) == 4
    # A warm start from a model takes that model's statistics too: one rollout of two envs comes on top of them.
    words = [*PPO, "-n", "64", "--eval-freq", "-1", "-i", str(normalized_run / "rl_model_256_steps.zip")]
    warm = load_from_pkl(tp.train(tmp_path, words) / "Pendulum-v1" / "vecnormalize.pkl")
    assert float(warm.obs_rms.count) == seen[0] + 66


def test_e1_the_best_model_gives_the_reward_that_was_logged(normalized_run):
    evaluations = read_evaluations(normalized_run / "evaluations.npz")
    means = np.mean(evaluations["results"], axis=1)
    best = int(np.argmax(means))
    assert best < len(means) - 1, "the best is to be another model than the last"
    model, env = load_run(normalized_run, "best", device="cpu")
    assert model.num_timesteps == evaluations["timesteps"][best]
    again = evaluate(model, env, 2, seed=evaluation_seed(7, evaluations["timesteps"][best]))
    assert list(again.returns) == evaluations["results"][best]
    env.close()


def test_e3_frequencies_count_env_steps_whatever_the_number_of_envs(tmp_path):
    words = (
        *("--algo", "ppo", *PENDULUM, "--n-envs", "4", "--eval-freq", "2000", "--save-freq", "4000", "-n", "8000"),
        *("-params", "n_steps:250", "batch_size:250", "n_epochs:1", NET),
    )
    run = tp.train(tmp_path, words)
    assert read_evaluations(run / "evaluations.npz")["timesteps"] == [2000, 4000, 6000, 8000]
    assert sorted(path.name for path in run.glob("rl_model_*")) == ["rl_model_4000_steps.zip", "rl_model_8000_steps.zip"]


class Clock(pl.Callback):
    """Notes Lightning's clock after every iteration."""

    def __init__(self):
        self.steps = []

    def on_train_batch_end(self, trainer, pl_module, *arguments):
        self.steps.append(trainer.global_step)


def test_i1_env_steps_are_the_only_clock_however_many_optimizers_there_are(tmp_path):
    clock = Clock()
    parameters = {"learning_starts": 50, "train_freq": 1, "gradient_steps": 2, "batch_size": 16, "policy_kwargs": NET[14:]}
    manager = ExperimentManager(
        None, "sac", "Pendulum-v1", str(tmp_path / "logs"), n_timesteps=400, eval_freq=200, n_eval_episodes=1, save_freq=200,
        hyperparams=parameters, env_kwargs={"max_episode_steps": 20}, callbacks=[clock], loggers=["csv"], log_interval=1,
        verbose=0, device="cpu",
    )  # fmt: skip
    model = manager.setup_experiment()
    manager.learn(model)
    run = Path(manager.save_path)
    assert clock.steps == list(range(20, 401, 20))  # wherever an episode was logged
    assert tp.checkpoints(run) == [200, 400]
    assert sorted(path.name for path in run.glob("rl_model_*")) == ["rl_model_200_steps.zip", "rl_model_400_steps.zip"]
    assert read_evaluations(run / "evaluations.npz")["timesteps"] == [200, 400]
    (logged,) = run.glob("csv/version_*/metrics.csv")
    assert {int(row["step"]) for row in tp.read_csv(logged)} == set(range(20, 401, 20))
