"""ARS in several envs: the envs play the candidates themselves, with the results of sb3-contrib's own parallel evaluation."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from sb3_contrib import ARS, TRPO
from sb3_contrib.common.vec_env import AsyncEval
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecNormalize

from lit_sb3_ray import RLTrainer
from lit_sb3_ray.envs.candidates import playing_candidates
from lit_sb3_ray.envs.monitor import MonitorFiles
from lit_sb3_ray.envs.spec import EnvSpec
from lit_sb3_ray.envs.vector import build_vec_env
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.lit.candidates import CandidateWorkers, candidate_workers
from lit_sb3_ray.vec.ray_vec_env import RayVecEnv

SEED = 5
CARTPOLE = EnvSpec("CartPole-v1")
PENDULUM = EnvSpec("Pendulum-v1", {"max_episode_steps": 30})
NORMALIZE = {"norm_reward": False}


class Steps(BaseCallback):
    """Notes the env step of every call."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def _on_step(self):
        self.seen.append(self.num_timesteps)
        return True


def envs(spec, n_envs=4, normalize=None, vec_env_cls=DummyVecEnv, **kwargs) -> VecEnv:
    stack = {"normalize": normalize, "training": True}
    return build_vec_env(
        playing_candidates(spec, stack), n_envs, seed=SEED, vec_env_cls=vec_env_cls, vec_env_kwargs=kwargs, normalize=normalize
    )


def ars(env, **kwargs):
    # Five candidates a sign, so that the envs' shares differ.
    return ARS("MlpPolicy", env, n_delta=5, n_top=3, policy_kwargs={"net_arch": [8]}, seed=SEED, device="cpu", **kwargs)


def outcome(model):
    normalize = model.get_vec_normalize_env()
    statistics = [] if normalize is None else [normalize.obs_rms.mean.tolist(), normalize.obs_rms.var.tolist()]
    count = 0.0 if normalize is None else normalize.obs_rms.count
    return [model.weights.tolist(), model.num_timesteps, model._n_updates, statistics, count, torch.get_rng_state().tolist()]


def learned_by_sb3(spec, steps, normalize):
    """What ARS learns with sb3-contrib's own workers, worker `i` seeded as env `i` is."""

    def worker(rank):
        def make():
            return build_vec_env(spec, 1, seed=SEED + rank, normalize=normalize)

        return make

    env = envs(spec, normalize=normalize)
    model = ars(env)
    steps_seen = Steps()
    model.learn(steps, async_eval=AsyncEval([worker(rank) for rank in range(4)], model.policy, "fork"), callback=steps_seen)
    return outcome(model), steps_seen.seen


@pytest.mark.parametrize(("spec", "steps", "normalize"), [(CARTPOLE, 400, None), (PENDULUM, 900, NORMALIZE)])
def test_in_process_they_are_sb3_contribs_workers(spec, steps, normalize):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        theirs, calls = learned_by_sb3(spec, steps, normalize)
    assert theirs[2] >= 3
    model = ars(envs(spec, normalize=normalize))
    model.learn(steps, async_eval=CandidateWorkers(model))
    assert outcome(model) == theirs
    fitted, seen = ars(envs(spec, normalize=normalize)), Steps()
    trainer = RLTrainer(max_steps=steps, rl_callback=seen)
    trainer.fit(fitted, until=1)
    trainer.fit(fitted)
    assert outcome(fitted) == theirs
    assert seen.seen == calls


@pytest.mark.usefixtures("ray_instance")
@pytest.mark.parametrize("kwargs", [{"envs_per_actor": 1}, {"envs_per_actor": 3}, {"envs_per_actor": 4, "transport": "calls"}])
def test_on_actors_the_weights_are_those_in_process(kwargs):
    model = ars(envs(PENDULUM, normalize=NORMALIZE))
    RLTrainer(max_steps=900).fit(model)
    expected = outcome(model)
    env = envs(PENDULUM, normalize=NORMALIZE, vec_env_cls=RayVecEnv, **kwargs)
    try:
        model = ars(env)
        RLTrainer(max_steps=900).fit(model)
        assert outcome(model) == expected
    finally:
        env.close()


def test_a_model_that_goes_on_takes_its_statistics_along(tmp_path):
    """After a load, the envs' statistics are new and the model's are not: no observation may count twice."""
    model = ars(envs(PENDULUM, normalize=NORMALIZE))
    RLTrainer(max_steps=600).fit(model)
    model.save(tmp_path / "model.zip")
    known = model.get_vec_normalize_env().obs_rms
    env = envs(PENDULUM, normalize=NORMALIZE)
    env.obs_rms = known.copy()
    loaded = ARS.load(tmp_path / "model.zip", env=env, device="cpu")
    done = loaded.num_timesteps
    RLTrainer(max_steps=done + 1, reset_num_timesteps=False).fit(loaded)
    # Ten episodes of 30 steps and their first observations; four more of the envs' reset when training begins.
    assert env.obs_rms.count - known.count == pytest.approx(10 * 31 + 4)


def test_episodes_are_written_down_where_they_were_played(tmp_path):
    stack = {"training": True}
    env = build_vec_env(playing_candidates(PENDULUM, stack), 3, seed=SEED, monitor=MonitorFiles(tmp_path))
    RLTrainer(max_steps=1).fit(ars(env))
    rows = [len((tmp_path / f"{i}.monitor.csv").read_text().splitlines()) - 2 for i in range(3)]
    assert rows == [4, 3, 3]


def test_only_rewards_normalised_is_refused():
    env = envs(PENDULUM, normalize={"norm_obs": False})
    with pytest.raises(ConfigError, match="normalize without norm_obs"):
        RLTrainer(max_steps=100).fit(ars(env))


def test_envs_without_a_candidate_are_told_of(caplog):
    RLTrainer(max_steps=1).fit(ARS("LinearPolicy", envs(CARTPOLE, 6), n_delta=2, seed=SEED, device="cpu"))
    assert "2 of 6 environments have nothing to do" in caplog.text


def test_other_algorithms_and_other_envs_have_no_workers():
    plain = build_vec_env(CARTPOLE, 2, seed=SEED)
    assert candidate_workers(ars(plain)) is None
    assert candidate_workers(TRPO("MlpPolicy", envs(CARTPOLE), device="cpu")) is None


def test_the_envs_can_still_be_stepped():
    ours, plain = envs(PENDULUM, 2), build_vec_env(PENDULUM, 2, seed=SEED)
    np.testing.assert_array_equal(ours.reset(), plain.reset())
    action = np.full((2, 1), 0.5, np.float32)
    for _ in range(35):
        for mine, theirs in zip(ours.step(action)[:3], plain.step(action)[:3], strict=True):
            np.testing.assert_array_equal(mine, theirs)
    assert VecNormalize not in [type(ours), type(plain)]
