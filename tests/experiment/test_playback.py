"""Playing: episodes of any number of envs, recurrent state, action masks, games' own scores, success."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from sb3_contrib import MaskablePPO, RecurrentPPO
from stable_baselines3 import PPO
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv

from lit_sb3_ray.experiment.playback import Episode, play, summarize


class Countdown(gym.Env):
    """Lasts `length` steps; only action 1 is allowed and pays 1; `is_success` tells whether the length is even."""

    observation_space = spaces.Box(-1.0, 1.0, (2,), np.float32)
    action_space = spaces.Discrete(3)

    def __init__(self, length, success=False):
        self.length, self.success, self.left = length, success, 0

    def action_masks(self):
        return np.array([False, True, False])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = self.length
        return self.observation_space.sample(), {}

    def step(self, action):
        self.left -= 1
        done = self.left == 0
        info = {"is_success": self.length % 2 == 0} if self.success else {}
        return self.observation_space.sample(), float(action == 1), done, False, info


class Lives(gym.Wrapper):
    """Ends an episode early and clips rewards to 0, as the Atari wrappers do; the monitor below sees the whole game."""

    def step(self, action):
        obs, _, terminated, truncated, info = self.env.step(action)
        return obs, 0.0, terminated or self.unwrapped.left == 3, truncated, info

    def reset(self, **kwargs):
        if 0 < self.unwrapped.left < self.unwrapped.length:
            return self.observation_space.sample(), {}
        return self.env.reset(**kwargs)


def envs(*lengths, success=False):
    return DummyVecEnv([lambda length=length: Countdown(length, success) for length in lengths])


def flat(steps):
    return [episode for ended in steps for episode in ended]


def test_every_env_s_episodes_are_told_as_they_end():
    env = envs(2, 3)
    steps = list(play(MaskablePPO("MlpPolicy", env, n_steps=8, device="cpu"), env, 6))
    assert [len(ended) for ended in steps] == [0, 1, 1, 1, 0, 2]
    assert flat(steps) == [
        Episode(0, 2.0, 2, None),
        Episode(1, 3.0, 3, None),
        *[Episode(0, 2.0, 2, None)] * 2,
        Episode(1, 3.0, 3, None),
    ]


@pytest.mark.parametrize("deterministic", [True, False])
def test_masks_are_obeyed(deterministic):
    env = envs(4)
    model = MaskablePPO("MlpPolicy", env, n_steps=8, device="cpu", seed=1)
    episodes = flat(play(model, env, 40, deterministic=deterministic))
    assert [episode.reward for episode in episodes] == [4.0] * 10


def test_a_maskable_agent_plays_an_env_without_masks():
    env = DummyVecEnv([lambda: gym.make("CartPole-v1")])
    assert flat(play(MaskablePPO("MlpPolicy", env, n_steps=8, device="cpu"), env, 200))


def test_recurrent_state_is_threaded_and_new_episodes_are_marked():
    seen = []

    class Recording(RecurrentPPO):
        def predict(self, observation, state=None, episode_start=None, deterministic=False):
            seen.append((state, episode_start.copy()))
            return super().predict(observation, state, episode_start, deterministic)

    env = envs(2, 3)
    list(play(Recording("MlpLstmPolicy", env, n_steps=8, device="cpu"), env, 4))
    assert seen[0][0] is None
    assert all(state is not None for state, _ in seen[1:])
    assert [start.tolist() for _, start in seen] == [[True, True], [False, False], [True, False], [False, True]]


def test_the_monitor_tells_a_game_s_own_score_and_end():
    env = DummyVecEnv([lambda: Lives(Monitor(Countdown(6)))])
    model = MaskablePPO("MlpPolicy", env, n_steps=8, device="cpu")
    assert flat(play(model, env, 12, monitored=True)) == [Episode(0, 6.0, 6, None)] * 2
    assert flat(play(model, env, 12)) == [Episode(0, 0.0, 3, None)] * 4


def test_success_is_counted():
    env = envs(2, 3, success=True)
    episodes = flat(play(PPO("MlpPolicy", env, n_steps=8, device="cpu"), env, 6))
    assert [episode.success for episode in episodes] == [True, False, True, True, False]
    assert summarize(episodes).success_rate == pytest.approx(3 / 5)


def test_figures_of_a_summary():
    summary = summarize([Episode(0, 1.0, 10, None), Episode(1, 3.0, 20, None)])
    assert (summary.episodes, summary.mean_reward, summary.std_reward) == (2, 2.0, 1.0)
    assert (summary.mean_length, summary.std_length, summary.success_rate) == (15.0, 5.0, None)
    assert summarize([]) is None
