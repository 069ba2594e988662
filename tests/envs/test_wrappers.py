"""The wrappers do to actions, rewards and observations what can be worked out by hand, and leave the wrapped env alone."""

from __future__ import annotations

import copy
import importlib

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv

from lit_sb3_ray.envs import wrappers
from lit_sb3_ray.envs.novel import NOVEL_IDS, register_novel_envs
from lit_sb3_ray.envs.wrappers.mask_velocity import VELOCITY_INDICES
from lit_sb3_ray.errors import ConfigError
from tiny_envs import CountEnv, GoalEnv, ImageEnv, MaskEnv

RNG = np.random.default_rng(0)
ACTIONS = RNG.uniform(-1, 1, (6, 1)).astype(np.float32)

STATEFUL = [
    (wrappers.TruncatedOnSuccessWrapper, {}, CountEnv),
    (wrappers.ActionNoiseWrapper, {}, CountEnv),
    (wrappers.ActionSmoothingWrapper, {"smoothing_coef": 0.5}, CountEnv),
    (wrappers.DelayedRewardWrapper, {"delay": 3}, CountEnv),
    (wrappers.HistoryWrapper, {"horizon": 3}, CountEnv),
    (wrappers.HistoryWrapperObsDict, {"horizon": 3}, GoalEnv),
    (wrappers.FrameSkip, {"skip": 2}, CountEnv),
]


def play(env, actions=ACTIONS):
    """Observations, rewards and the end of one episode."""
    observations, rewards = [env.reset(seed=0)[0]], []
    for action in actions:
        observation, reward, terminated, truncated, _ = env.step(action)
        observations.append(observation)
        rewards.append(reward)
        if terminated or truncated:
            return observations, rewards, (terminated, truncated)
    return observations, rewards, (False, False)


def test_every_name_is_importable_from_the_package():
    for name in wrappers.__all__:
        assert issubclass(getattr(importlib.import_module("lit_sb3_ray.envs.wrappers"), name), gym.Wrapper)
    with pytest.raises(AttributeError):
        _ = wrappers.NoSuchWrapper


@pytest.mark.parametrize(("wrapper", "kwargs", "inner"), STATEFUL)
def test_reset_passes_seed_and_options_on(wrapper, kwargs, inner):
    seen = []

    class Spy(gym.Wrapper):
        def reset(self, *, seed=None, options=None):
            seen.append((seed, options))
            return self.env.reset(seed=seed, options=options)

    env = wrapper(Spy(inner()), **kwargs)
    env.reset(seed=7, options={"offset": 2.0})
    env.reset()
    assert seen == [(7, {"offset": 2.0}), (None, None)]


@pytest.mark.parametrize(("wrapper", "kwargs", "inner"), STATEFUL)
def test_spaces_of_the_wrapped_env_are_left_alone_and_observations_lie_in_the_new_one(wrapper, kwargs, inner):
    env = inner()
    before = copy.deepcopy((env.observation_space, env.action_space))
    wrapped = wrapper(env, **kwargs)
    observations, _, _ = play(wrapped)
    assert (env.observation_space, env.action_space) == before
    assert all(wrapped.observation_space.contains(observation) for observation in observations)


def test_wrappers_leave_numpys_global_generator_alone():
    np.random.seed(3)
    before = np.random.get_state()[1].copy()
    for wrapper, kwargs, inner in STATEFUL:
        play(wrapper(inner(), **kwargs))
    np.testing.assert_array_equal(np.random.get_state()[1], before)


def test_truncated_on_success_counts_successes_in_a_row():
    env = wrappers.TruncatedOnSuccessWrapper(CountEnv(length=9, success_at=2), reward_offset=-10.0, n_successes=3)
    _, rewards, end = play(env)
    assert rewards == [-9.0, -8.0, -7.0, -6.0]
    assert end == (False, True)
    env.reset()
    assert env.current_successes == 0


def test_compute_reward_is_found_below_the_monitor_with_the_offset():
    env = wrappers.TruncatedOnSuccessWrapper(Monitor(GoalEnv()), reward_offset=0.5)
    vec = DummyVecEnv([lambda: wrappers.HistoryWrapperObsDict(env)])
    achieved = RNG.normal(size=(8, 1)).astype(np.float32)
    desired = RNG.normal(size=(8, 1)).astype(np.float32)
    (rewards,) = vec.env_method("compute_reward", achieved, desired, [{}] * 8, indices=[0])
    np.testing.assert_allclose(rewards, -np.abs(achieved - desired)[:, 0] + 0.5)


def test_her_trains_through_monitor_and_truncation_and_history():
    from stable_baselines3 import SAC, HerReplayBuffer

    env = Monitor(GoalEnv())
    env = wrappers.TruncatedOnSuccessWrapper(env, reward_offset=1.0)
    env = wrappers.HistoryWrapperObsDict(env, horizon=2)
    options = {"learning_starts": 20, "batch_size": 8, "policy_kwargs": {"net_arch": [8]}, "seed": 0}
    model = SAC("MultiInputPolicy", env, replay_buffer_class=HerReplayBuffer, **options)
    model.learn(60)
    sample = model.replay_buffer.sample(64)
    distance = (sample.next_observations["achieved_goal"] - sample.next_observations["desired_goal"]).abs().sum(1)
    np.testing.assert_allclose(sample.rewards.numpy()[:, 0], 1.0 - distance.numpy(), atol=1e-5)


def test_action_noise_is_gaussian_clipped_and_fixed_by_the_seed():
    def noises(seed):
        env = CountEnv(length=10_000)
        noisy = wrappers.ActionNoiseWrapper(env, noise_std=0.2)
        noisy.reset(seed=seed)
        for _ in range(2000):
            noisy.step(np.zeros(1, np.float32))
        return np.array(env.actions)

    drawn = noises(1)
    assert drawn.dtype == np.float32
    assert abs(drawn.mean()) < 0.02
    assert abs(drawn.std() - 0.2) < 0.02
    np.testing.assert_array_equal(drawn, noises(1))
    assert not np.array_equal(drawn, noises(2))
    env = CountEnv()
    noisy = wrappers.ActionNoiseWrapper(env, noise_std=50.0)
    play(noisy)
    assert all(abs(action[0]) <= 1.0 for action in env.actions)


def test_action_smoothing_is_an_exponential_moving_average_from_zero():
    env = CountEnv(length=6)
    play(wrappers.ActionSmoothingWrapper(env, smoothing_coef=0.75))
    expected, average = [], np.zeros(1, np.float32)
    for action in ACTIONS:
        average = 0.75 * average + 0.25 * action
        expected.append(average)
    np.testing.assert_array_equal(env.actions, expected)


def test_delayed_reward_pays_every_third_step_and_the_rest_at_the_end():
    env = wrappers.DelayedRewardWrapper(CountEnv(length=5), delay=3)
    for _ in range(2):  # The second episode owes nothing of the first.
        assert play(env)[1] == [0.0, 0.0, 6.0, 0.0, 9.0]


def test_frame_skip_sums_rewards_and_stops_at_the_end():
    observations, rewards, end = play(wrappers.FrameSkip(CountEnv(length=5), skip=2))
    assert rewards == [3.0, 7.0, 5.0]
    assert [observation[0] for observation in observations] == [0, 2, 4, 5]
    assert end == (True, False)


@pytest.mark.parametrize("horizon", [1, 2, 3, 4])
def test_history_holds_the_last_observations_then_the_last_actions(horizon):
    plain, _, _ = play(CountEnv(length=6))
    env = wrappers.HistoryWrapper(CountEnv(length=6), horizon=horizon)
    for _ in range(2):
        stacked, _, _ = play(env)
        for step, vector in enumerate(stacked):
            past = [np.zeros(2, np.float32)] * horizon + plain[: step + 1]
            acts = [np.zeros(1, np.float32)] * horizon + list(ACTIONS[:step])
            np.testing.assert_array_equal(vector, np.concatenate(past[-horizon:] + acts[-horizon:]))
            assert vector.dtype == np.float32
    assert env.observation_space.shape == (3 * horizon,)
    np.testing.assert_array_equal(env.observation_space.low, [-1.0] * 3 * horizon)
    np.testing.assert_array_equal(env.observation_space.high, [100.0] * 2 * horizon + [1.0] * horizon)


def test_dict_history_changes_one_key_and_keeps_the_order_of_the_keys():
    class Unsorted(GoalEnv):
        def __init__(self):
            super().__init__()
            parts = self.observation_space.spaces
            self.observation_space = spaces.Dict(
                [(key, parts[key]) for key in ("observation", "desired_goal", "achieved_goal")]
            )

    env = Unsorted()
    wrapped = wrappers.HistoryWrapperObsDict(env, horizon=2)
    assert list(wrapped.observation_space.spaces) == ["observation", "desired_goal", "achieved_goal"]
    plain, _, _ = play(Unsorted())
    stacked, _, _ = play(wrapped)
    for step in range(1, len(plain)):
        np.testing.assert_array_equal(stacked[step]["achieved_goal"], plain[step]["achieved_goal"])
        acts = [np.zeros(1, np.float32), *ACTIONS[:step]][-2:]
        expected = np.concatenate([plain[step - 1]["observation"], plain[step]["observation"], *acts])
        np.testing.assert_array_equal(stacked[step]["observation"], expected)


@pytest.mark.parametrize("env_id", sorted(VELOCITY_INDICES))
def test_masking_zeroes_the_velocities_and_nothing_else(env_id):
    env = gym.make(env_id)
    masked = wrappers.MaskVelocityWrapper(env)
    observation = np.arange(1, env.observation_space.shape[0] + 1, dtype=np.float32)
    result = masked.observation(observation)
    hidden = list(VELOCITY_INDICES[env_id])
    assert not result[hidden].any()
    np.testing.assert_array_equal(np.delete(result, hidden), np.delete(observation, hidden))
    assert result.dtype == observation.dtype


def test_velocities_are_where_they_are_said_to_be():
    env = gym.make("CartPole-v1")
    env.reset(seed=0)
    env.unwrapped.state = (0.1, 0.2, 0.3, 0.4)
    assert wrappers.MaskVelocityWrapper(env).observation(np.array(env.unwrapped.state))[[1, 3]].tolist() == [0, 0]
    lander = gym.make("LunarLander-v3")
    lander.reset(seed=0)
    state = np.array(lander.step(0)[0])
    body = lander.unwrapped.lander
    assert np.sign(state[2]) == np.sign(body.linearVelocity.x)
    assert state[5] == pytest.approx(20.0 * body.angularVelocity / 50, rel=1e-3)


def test_novel_envs_are_the_masked_ones_with_their_time_limit_and_arguments():
    register_novel_envs()
    assert set(NOVEL_IDS) >= {"LunarLanderNoVel-v3", "LunarLanderContinuousNoVel-v3", "CartPoleNoVel-v1"}
    for novel_id, base_id in NOVEL_IDS.items():
        novel, base = gym.make(novel_id), gym.make(base_id)
        expected = wrappers.MaskVelocityWrapper(base)
        np.testing.assert_array_equal(novel.reset(seed=4)[0], expected.reset(seed=4)[0])
        assert novel.spec.max_episode_steps == base.spec.max_episode_steps
    assert gym.make("PendulumNoVel-v1", g=1.5).unwrapped.g == 1.5


def test_action_masker_finds_the_method_below_the_monitor():
    env = wrappers.ActionMasker(Monitor(MaskEnv()), "allowed")
    vec = DummyVecEnv([lambda: env])
    vec.reset()
    vec.step([1])
    assert vec.has_attr("action_masks")
    np.testing.assert_array_equal(vec.env_method("action_masks"), [[False, True, True, False]])
    by_function = wrappers.ActionMasker(MaskEnv(), lambda inner: inner.unwrapped.allowed())
    by_function.reset()
    assert by_function.action_masks().tolist() == [True, True, False, False]


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (lambda: wrappers.ActionNoiseWrapper(MaskEnv()), "ActionNoiseWrapper needs continuous actions"),
        (lambda: wrappers.ActionNoiseWrapper(CountEnv(), noise_std=-1), "noise_std"),
        (lambda: wrappers.ActionSmoothingWrapper(MaskEnv()), "ActionSmoothingWrapper needs continuous actions"),
        (lambda: wrappers.ActionSmoothingWrapper(CountEnv(), smoothing_coef=1.5), "smoothing_coef"),
        (lambda: wrappers.DelayedRewardWrapper(CountEnv(), delay=0), "delay"),
        (lambda: wrappers.FrameSkip(CountEnv(), skip=0), "skip"),
        (lambda: wrappers.TruncatedOnSuccessWrapper(CountEnv(), n_successes=0), "n_successes"),
        (lambda: wrappers.HistoryWrapper(ImageEnv()), "HistoryWrapper needs observations that are vectors"),
        (lambda: wrappers.HistoryWrapper(MaskEnv()), "HistoryWrapper needs actions that are vectors"),
        (lambda: wrappers.HistoryWrapper(CountEnv(), horizon=0), "horizon"),
        (lambda: wrappers.HistoryWrapperObsDict(CountEnv()), "needs a dict with the key 'observation'"),
        (lambda: wrappers.MaskVelocityWrapper(gym.make("Acrobot-v1")), "Acrobot-v1"),
        (lambda: wrappers.ActionMasker(MaskEnv(), "alowed"), "'alowed'"),
        (lambda: wrappers.YAMLCompatResizeObservation(ImageEnv(), [64]), "[height, width]"),
    ],
)
def test_what_cannot_be_wrapped_is_refused_in_one_line(build, text):
    with pytest.raises(ConfigError) as refused:
        build()
    assert text in str(refused.value)
    assert "\n" not in str(refused.value)
