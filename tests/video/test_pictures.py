"""Pictures of environments: one after the reset and after each step, tiles of several, refusals of what is none."""

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3.common.vec_env import DummyVecEnv

import tiny_envs  # noqa: F401 (registers the environments)
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.video.pictures import USUAL_RATE, PictureTap, first_picture, picture, picture_rate


def vec_env(*options, render_mode="rgb_array"):
    return DummyVecEnv([lambda more=more: gym.make("TinyDrawn-v0", render_mode=render_mode, **more) for more in options])


def bar(shown):
    """How many steps the picture tells of."""
    return int((shown[:, 0] == 255).all(axis=1).sum()) // 4


def test_the_start_and_each_step_is_shown():
    shown = []
    env = PictureTap(vec_env({"length": 3}), shown.append)
    env.reset()
    for _ in range(4):
        env.step(np.zeros((1, 1)))
    # The third step ends the episode, after which the next one's start is what there is to see.
    assert [bar(each) for each in shown] == [0, 1, 2, 0, 1]
    assert all(each.shape == (48, 64, 3) and each.dtype == np.uint8 for each in shown)
    env.close()


def test_several_environments_are_tiled():
    env = vec_env({"colour": (250, 0, 0)}, {"colour": (0, 250, 0)}, {"colour": (0, 0, 250)})
    env.reset()
    shown = picture(env)
    assert shown.shape == (96, 128, 3)
    centres = [shown[24, 32], shown[24, 96], shown[72, 32], shown[72, 96]]
    assert [list(centre) for centre in centres] == [[250, 0, 0], [0, 250, 0], [0, 0, 250], [0, 0, 0]]
    env.close()


@pytest.mark.parametrize(
    ("draws", "part"),
    [
        ("nothing", "it draws NoneType instead of bytes"),
        ("grey", r"it draws uint8 of shape \(48, 64\) instead of bytes of shape \(height, width, 3\)"),
        ("error", "OSError: no light"),
    ],
)
def test_what_is_no_picture_is_told_in_one_line(draws, part):
    env = vec_env({"draws": draws})
    env.reset()
    with pytest.raises(ConfigError, match=f"environment 'TinyDrawn-v0' cannot be recorded: {part}"):
        first_picture(env)
    env.close()


def test_another_render_mode_is_refused():
    env = vec_env({}, render_mode=None)
    env.reset()
    with pytest.raises(ConfigError, match="its render_mode is None and not 'rgb_array'"):
        picture(env)
    env.close()


def test_different_sizes_cannot_be_tiled():
    env = vec_env({"width": 64}, {"width": 32})
    env.reset()
    with pytest.raises(ConfigError, match="different sizes"):
        picture(env)
    env.close()


def test_the_rate_is_the_environments_own():
    env = vec_env({}, {})
    assert picture_rate(env) == 20
    env.close()
    plain = DummyVecEnv([lambda: gym.make("TinyCount-v0", render_mode="rgb_array")])
    assert picture_rate(plain) == USUAL_RATE
    plain.close()
