"""Lightning is real: its callbacks, loggers, profilers and settings do in an RLTrainer what they say, in env steps."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
import threading
from datetime import timedelta
from io import BytesIO

import numpy as np
import pytest
import pytorch_lightning as pl
import torch
from pytorch_lightning.loggers import CSVLogger, Logger
from sb3_contrib import ARS
from stable_baselines3 import A2C, DQN, PPO, SAC
from stable_baselines3.common.callbacks import (
    BaseCallback,
    EvalCallback,
    StopTrainingOnMaxEpisodes,
    StopTrainingOnRewardThreshold,
)
from stable_baselines3.common.env_util import make_vec_env

import tiny_envs  # noqa: F401 (registers the environments)
from lit_sb3_ray import RLEnvDataModule, RLModule, RLTrainer
from lit_sb3_ray.errors import ConfigError

# An episode of TinyCount-v0 has 5 steps and the return 15, whatever is done.
STEPS, RETURN = 16, 15.0
TICK = timedelta(microseconds=1)


def ppo(seed=0, env="TinyCount-v0", **kwargs):
    options = {"n_steps": STEPS, "batch_size": STEPS, "n_epochs": 1, "seed": seed, "device": "cpu", **kwargs}
    return PPO("MlpPolicy", env, **options)


def evaluation(freq, env="TinyCount-v0", **kwargs):
    return EvalCallback(make_vec_env(env), n_eval_episodes=1, eval_freq=freq, verbose=0, warn=False, **kwargs)


def weights(model):
    return torch.cat([parameter.detach().flatten() for parameter in model.policy.parameters()])


def rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


class Diary(pl.Callback):
    """Notes when it is called, and logs a metric of its own."""

    def __init__(self):
        self.calls = []

    def on_fit_start(self, trainer, pl_module):
        self.calls.append(("fit_start", trainer.global_step))

    def on_train_start(self, trainer, pl_module):
        self.calls.append(("train_start", trainer.global_step))

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        self.calls.append(("batch_end", trainer.global_step))
        pl_module.log("mine/steps", float(trainer.global_step))

    def on_train_epoch_end(self, trainer, pl_module):
        self.calls.append(("epoch_end", trainer.global_step))

    def on_validation_end(self, trainer, pl_module):
        self.calls.append(("validation_end", trainer.global_step))

    def on_fit_end(self, trainer, pl_module):
        self.calls.append(("fit_end", trainer.global_step))


class CountingLogger(Logger):
    """Keeps what it is given."""

    def __init__(self):
        super().__init__()
        self.metrics, self.finalized = [], []

    name, version = "counting", 0

    def log_metrics(self, metrics, step=None):
        self.metrics.append((step, dict(metrics)))

    def log_hyperparams(self, params, *args, **kwargs):
        pass

    def finalize(self, status):
        self.finalized.append(status)


class TestEarlyStopping:
    def test_patience_counts_evaluations_and_not_iterations(self):
        stopping = pl.callbacks.EarlyStopping("eval/mean_reward", mode="max", patience=2)
        trainer = RLTrainer(max_steps=1000, callbacks=stopping, rl_callback=evaluation(4 * STEPS))
        trainer.fit(ppo())
        # The first evaluation is the best; the two after it are no better.
        assert trainer.global_step == 3 * 4 * STEPS
        assert stopping.best_score == RETURN

    @pytest.mark.parametrize("epoch_end", [False, True])
    @pytest.mark.parametrize("until", [3 * STEPS, 100])
    def test_what_it_stops_stays_stopped_also_where_a_slice_ends(self, epoch_end, until):
        stopping = pl.callbacks.EarlyStopping("eval/mean_reward", mode="max", patience=2, check_on_train_epoch_end=epoch_end)
        logger = CountingLogger()
        trainer = RLTrainer(max_steps=1000, callbacks=stopping, rl_callback=evaluation(STEPS), logger=logger)
        model = ppo()
        trainer.fit(model, until=STEPS)
        trainer.fit(model, until=until)
        assert trainer.global_step == 3 * STEPS
        assert logger.finalized == ["success"]
        trainer.fit(model)
        assert trainer.global_step == 3 * STEPS
        assert not trainer.rl_budget_reached

    def test_another_metric_is_looked_at_whenever_it_has_been_logged_anew(self):
        stopping = pl.callbacks.EarlyStopping("rollout/ep_rew_mean", mode="max", patience=2)
        trainer = RLTrainer(max_steps=1000, callbacks=stopping, log_interval=2, rl_callback=evaluation(STEPS))
        trainer.fit(ppo())
        assert trainer.global_step == 3 * 2 * STEPS

    def test_a_metric_that_a_callback_logs_can_be_monitored(self):
        stopping = pl.callbacks.EarlyStopping("mine/steps", mode="max", stopping_threshold=5 * STEPS - 1)
        trainer = RLTrainer(max_steps=1000, callbacks=[Diary(), stopping])
        trainer.fit(ppo())
        assert trainer.global_step == 5 * STEPS


class TestOwnCallbacks:
    def test_every_hook_sees_env_steps(self):
        diary = Diary()
        RLTrainer(max_steps=3 * STEPS, callbacks=diary, rl_callback=evaluation(2 * STEPS)).fit(ppo())
        expected = [("fit_start", 0), ("train_start", 0)]
        for step in (STEPS, 2 * STEPS, 3 * STEPS):
            expected += [("batch_end", step)]
            expected += [("validation_end", step)] if step == 2 * STEPS else []
            expected += [("epoch_end", step)]
        assert diary.calls == [*expected, ("fit_end", 3 * STEPS)]

    def test_a_logger_gets_their_metrics_and_sb3s_at_env_steps(self, tmp_path):
        logger = CSVLogger(tmp_path, name="", version="run")
        RLTrainer(max_steps=3 * STEPS, callbacks=Diary(), logger=logger, rl_callback=evaluation(STEPS)).fit(ppo())
        table = rows(tmp_path / "run" / "metrics.csv")
        steps = {str(step) for step in (STEPS, 2 * STEPS, 3 * STEPS)}
        for column in ("mine/steps", "eval/mean_reward", "rollout/ep_rew_mean", "time/total_timesteps"):
            assert {row["step"] for row in table if row[column]} == steps, column
        assert all(float(row["mine/steps"]) == float(row["step"]) for row in table if row["mine/steps"])
        assert {row["rollout/ep_rew_mean"] for row in table} - {""} == {str(RETURN)}

    def test_callback_metrics_hold_the_latest_values(self):
        seen = []

        class Reader(pl.Callback):
            def on_train_batch_end(self, trainer, *_):
                seen.append({name: float(value) for name, value in trainer.callback_metrics.items()})

        RLTrainer(max_steps=2 * STEPS, callbacks=Reader(), rl_callback=evaluation(2 * STEPS)).fit(ppo())
        assert "eval/mean_reward" not in seen[0]
        assert seen[0]["rollout/ep_rew_mean"] == RETURN
        assert seen[1]["eval/mean_reward"] == RETURN

    @pytest.mark.parametrize("timer", [{"callbacks": pl.callbacks.Timer(TICK)}, {"max_time": TICK}])
    def test_a_time_limit_ends_the_training_for_good(self, timer):
        trainer, model = RLTrainer(max_steps=1000, **timer), ppo()
        trainer.fit(model, until=500)
        trainer.fit(model)
        assert trainer.global_step == STEPS

    def test_a_callback_may_set_should_stop(self):
        class Stop(pl.Callback):
            def on_train_batch_end(self, trainer, *_):
                trainer.should_stop = trainer.global_step >= 2 * STEPS

        trainer = RLTrainer(max_steps=1000, callbacks=Stop())
        trainer.fit(ppo())
        assert trainer.global_step == 2 * STEPS


class TestModelCheckpoint:
    def test_the_best_evaluation_is_saved_and_can_be_loaded(self, tmp_path):
        saving = pl.callbacks.ModelCheckpoint(tmp_path, monitor="eval/mean_reward", mode="max")
        trainer = RLTrainer(max_steps=4 * STEPS, callbacks=saving, rl_callback=evaluation(2 * STEPS))
        model = ppo()
        trainer.fit(model, until=2 * STEPS)
        best = weights(model)
        trainer.fit(model)
        assert [path.name for path in tmp_path.iterdir()] == [f"epoch=1-step={2 * STEPS}.ckpt"]
        assert trainer.checkpoint_callback is saving
        saved = torch.load(saving.best_model_path, weights_only=False)
        assert torch.equal(weights(PPO.load(BytesIO(saved["algorithm"]))), best)
        module = RLModule.load_from_checkpoint(saving.best_model_path, algorithm=ppo(seed=9), weights_only=False)
        assert torch.equal(weights(module.algorithm), best)

    def test_iterations_can_be_saved(self, tmp_path):
        saving = pl.callbacks.ModelCheckpoint(tmp_path, save_top_k=-1, every_n_epochs=2, save_on_train_epoch_end=True)
        RLTrainer(max_steps=4 * STEPS, callbacks=saving).fit(ppo())
        assert {path.name for path in tmp_path.iterdir()} == {f"epoch={e}-step={(e + 1) * STEPS}.ckpt" for e in (1, 3)}

    @pytest.mark.parametrize("option", [{"every_n_train_steps": 100}, {"train_time_interval": timedelta(seconds=1)}])
    def test_what_would_miss_its_steps_is_refused(self, option):
        with pytest.raises(ConfigError, match=r"ModelCheckpoint.*would miss"):
            RLTrainer(max_steps=10, callbacks=pl.callbacks.ModelCheckpoint(**option))

    def test_nothing_is_saved_unless_asked_for(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        RLTrainer(max_steps=2 * STEPS, rl_callback=evaluation(STEPS)).fit(ppo())
        assert list(tmp_path.iterdir()) == []
        RLTrainer(max_steps=2 * STEPS, rl_callback=evaluation(STEPS), enable_checkpointing=True).fit(ppo())
        assert [path.suffix for path in tmp_path.glob("checkpoints/*")] == [".ckpt"]


class TestLoggers:
    def test_they_are_finalised_once_and_not_at_each_slice(self):
        logger, model = CountingLogger(), ppo()
        trainer = RLTrainer(max_steps=4 * STEPS, logger=logger)
        for until in (STEPS, 2 * STEPS, 3 * STEPS):
            trainer.fit(model, until=until)
            assert logger.finalized == []
        assert trainer.logger is logger
        trainer.fit(model)
        assert logger.finalized == ["success"]
        trainer.fit(model)
        assert logger.finalized == ["success"]
        assert [step for step, metrics in logger.metrics if "time/fps" in metrics] == [STEPS * k for k in (1, 2, 3, 4)]

    def test_a_failed_training_is_finalised_as_failed(self):
        class Broken(BaseCallback):
            def _on_step(self):
                raise RuntimeError("no more")

        logger = CountingLogger()
        with pytest.raises(RuntimeError, match="no more"):
            RLTrainer(max_steps=100, logger=logger, rl_callback=Broken()).fit(ppo())
        assert logger.finalized == ["failed"]


class TestProfilers:
    def test_the_report_names_the_two_halves_of_an_iteration(self, tmp_path):
        profiler = pl.profilers.SimpleProfiler(tmp_path, "profile")
        RLTrainer(max_steps=2 * STEPS, profiler=profiler).fit(ppo())
        (report,) = tmp_path.iterdir()
        assert "collect_rollouts" in report.read_text()
        assert " train " in report.read_text()

    def test_ars_has_one_part(self, tmp_path):
        profiler = pl.profilers.AdvancedProfiler(tmp_path, "profile")
        model = ARS("LinearPolicy", "TinyCount-v0", n_delta=2, seed=0, device="cpu")
        RLTrainer(max_steps=20, profiler=profiler).fit(model)
        assert "update" in next(tmp_path.iterdir()).read_text()


class Patience(BaseCallback):
    """Answers False at its n-th call, as any callback that stops does."""

    def __init__(self, calls):
        super().__init__()
        self.calls = calls

    def _on_step(self):
        return self.n_calls < self.calls


class TestStoppingCallbacks:
    MODELS = {  # noqa: RUF012
        "ppo": lambda: ppo(n_steps=64, batch_size=32),
        "a2c": lambda: A2C("MlpPolicy", "TinyCount-v0", seed=0, device="cpu"),
        "dqn": lambda: DQN("MlpPolicy", "CartPole-v1", learning_starts=20, seed=0, device="cpu"),
        "sac": lambda: SAC("MlpPolicy", "TinyCount-v0", learning_starts=20, batch_size=8, seed=0, device="cpu"),
    }
    CALLBACKS = {  # noqa: RUF012
        "max episodes": lambda env: StopTrainingOnMaxEpisodes(4),
        "threshold": lambda env: evaluation(30, env, callback_on_new_best=StopTrainingOnRewardThreshold(1.0)),
        "in the first rollout": lambda env: Patience(3),
    }

    @pytest.mark.parametrize("algo", MODELS)
    @pytest.mark.parametrize("callback", CALLBACKS)
    def test_training_ends_where_learn_ends_it(self, algo, callback):
        learned = self.MODELS[algo]()
        learned.learn(500, callback=self.CALLBACKS[callback](learned.get_env().envs[0].spec.id))
        fitted = self.MODELS[algo]()
        trainer = RLTrainer(max_steps=500, rl_callback=self.CALLBACKS[callback](fitted.get_env().envs[0].spec.id))
        trainer.fit(fitted, until=250)
        trainer.fit(fitted)
        assert fitted.num_timesteps == learned.num_timesteps < 200
        assert torch.equal(weights(fitted), weights(learned))

    def test_ars_stops_after_the_update(self):
        model = ARS("LinearPolicy", "TinyCount-v0", n_delta=2, seed=0, device="cpu")
        RLTrainer(max_steps=1000, rl_callback=Patience(25)).fit(model)
        # An update plays an episode in each of the two directions of each delta.
        assert model.num_timesteps == 2 * 2 * 2 * 5


class TestSettings:
    @pytest.mark.parametrize(
        ("settings", "told"),
        [
            ({"max_steps": 0}, "max_steps is the budget in env steps and must be at least 1, not 0"),
            ({"max_steps": 10, "max_epochs": 3}, "max_epochs has no meaning here"),
            ({"max_steps": 10, "min_epochs": 3}, "min_epochs has no meaning here"),
            ({"max_steps": 10, "min_steps": 3}, "min_steps has no meaning here"),
            ({"max_steps": 10, "precision": "16-mixed"}, "unknown precision '16-mixed'"),
            ({"max_steps": 10, "precision": 64}, "unknown precision '64'"),
            ({"max_steps": 10, "devices": 2}, "devices 2: an algorithm trains in one process"),
            ({"max_steps": 10, "strategy": "ddp"}, "strategy 'ddp': an algorithm trains in one process"),
            ({"max_steps": 10, "num_nodes": 2}, "num_nodes 2: an algorithm trains in one process"),
        ],
    )
    def test_what_has_no_meaning_is_refused_in_one_line(self, settings, told):
        with pytest.raises(ConfigError) as caught:
            RLTrainer(**settings)
        assert told in str(caught.value)
        assert "\n" not in str(caught.value)

    def test_an_algorithm_without_env_is_told_what_it_needs(self):
        model = PPO.load(saved(ppo()), device="cpu")
        with pytest.raises(ConfigError, match="has no env"):
            RLTrainer(max_steps=10).fit(model)
        RLTrainer(max_steps=10).fit(model, RLEnvDataModule("TinyCount-v0"))
        assert model.num_timesteps == STEPS

    def test_a_slice_that_ends_where_the_training_stands_is_empty(self):
        trainer, model = RLTrainer(max_steps=4 * STEPS), ppo()
        trainer.fit(model, until=0)
        assert model.num_timesteps == 0
        trainer.fit(model, until=STEPS)
        trainer.fit(model, until=0)
        assert model.num_timesteps == STEPS

    def test_the_budget_is_told_in_env_steps(self):
        trainer, model = RLTrainer(max_steps=4 * STEPS), ppo()
        assert (trainer.global_step, trainer.rl_progress, trainer.rl_budget_reached) == (0, 0.0, False)
        trainer.fit(model, until=STEPS)
        assert (trainer.rl_num_timesteps, trainer.rl_total_timesteps, trainer.rl_progress) == (STEPS, 4 * STEPS, 0.25)
        trainer.fit(model)
        assert trainer.rl_budget_reached


def saved(model):
    buffer = BytesIO()
    model.save(buffer)
    buffer.seek(0)
    return buffer


SCRIPT = """
import pytorch_lightning as pl
from stable_baselines3 import PPO
from lit_sb3_ray import RLTrainer

model = PPO("MlpPolicy", "CartPole-v1", n_steps=32, batch_size=32, n_epochs=1, device="cpu")
trainer = RLTrainer(max_steps=64{options})
trainer.fit(model)
assert trainer.global_step == 64
"""


def run_script(options, folder, **variables):
    environ = {**os.environ, **variables}
    script = SCRIPT.format(options=options)
    return subprocess.run([sys.executable, "-c", script], cwd=folder, env=environ, capture_output=True, text=True, check=True)


class TestProcess:
    def test_lightning_says_nothing_and_leaves_nothing(self, tmp_path):
        done = run_script("", tmp_path)
        assert (done.stdout, done.stderr) == ("", "")
        assert list(tmp_path.iterdir()) == []

    def test_a_job_of_slurm_is_one_process_like_any_other(self, tmp_path):
        slurm = {"NTASKS": "2", "JOB_ID": "7", "JOB_NAME": "train", "PROCID": "1", "LOCALID": "1", "NODEID": "0"}
        variables = {f"SLURM_{name}": value for name, value in slurm.items()}
        done = run_script(", logger=pl.loggers.CSVLogger('.', name='csv')", tmp_path, **variables)
        assert (done.stdout, done.stderr) == ("", "")
        # Lightning's loggers stay silent in every process but the first of a job; here each is an experiment of its own.
        assert [row["step"] for row in rows(tmp_path / "csv" / "version_0" / "metrics.csv")] == ["32", "64"]

    def test_what_was_asked_for_is_said(self, caplog):
        caplog.set_level("INFO")
        stopping = pl.callbacks.EarlyStopping("time/iterations", patience=1, verbose=True)
        RLTrainer(max_steps=1000, profiler="simple", callbacks=[stopping]).fit(ppo())
        assert "collect_rollouts" in caplog.text
        assert "Signaling Trainer to stop" in caplog.text

    def test_fit_works_in_a_thread(self):
        alone = RLTrainer(max_steps=3 * STEPS).fit(ppo())
        in_thread = ppo()
        thread = threading.Thread(target=RLTrainer(max_steps=3 * STEPS).fit, args=(in_thread,))
        thread.start()
        thread.join()
        assert torch.equal(weights(in_thread), weights(alone))

    def test_several_fits_follow_each_other(self):
        trainer = RLTrainer(max_steps=2 * STEPS)
        first = trainer.fit(ppo(seed=1))
        second = trainer.fit(ppo(seed=2))
        alone = RLTrainer(max_steps=2 * STEPS).fit(ppo(seed=2))
        assert first.num_timesteps == second.num_timesteps == 2 * STEPS
        assert torch.equal(weights(second), weights(alone))

    def test_what_was_changed_for_speed_is_put_back(self):
        class Threads(pl.Callback):
            checks = None

            def on_train_batch_end(self, *_):
                self.checks = torch.distributions.Distribution._validate_args

        callback, before = Threads(), torch.distributions.Distribution._validate_args
        RLTrainer(max_steps=STEPS, callbacks=callback).fit(ppo())
        assert callback.checks is False
        assert torch.distributions.Distribution._validate_args is before
        assert np.isfinite(weights(ppo()).numpy()).all()


class TestUnseenMonitor:
    def test_a_misspelt_metric_is_told(self, caplog):
        stopping = pl.callbacks.EarlyStopping("eval/mean_rewrd", mode="max")
        RLTrainer(max_steps=64, callbacks=[stopping]).fit(PPO("MlpPolicy", "CartPole-v1", n_steps=32, batch_size=32))
        assert "EarlyStopping never saw 'eval/mean_rewrd'; logged were: " in caplog.text
        assert "rollout/ep_rew_mean" in caplog.text
