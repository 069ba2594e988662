"""Drawing without a screen: what is set for it, what is left alone, and that MuJoCo draws."""

import os
import subprocess
import sys

import pytest

from lit_sb3_ray.cli.display import offscreen, offscreen_variables

SCREENS = ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER", "MUJOCO_GL")

DRAW = """
import gymnasium as gym
from lit_sb3_ray.cli.display import offscreen
with offscreen():
    env = gym.make("Reacher-v5", render_mode="rgb_array", width=64, height=48)
    env.reset(seed=0)
    picture = env.render()
    print(picture.shape, len(set(map(tuple, picture.reshape(-1, 3)))) > 20)
    env.close()
"""


@pytest.fixture
def no_screen(monkeypatch):
    for name in SCREENS:
        monkeypatch.delenv(name, raising=False)


def test_variables_are_set_for_the_time_being(no_screen):
    with offscreen():
        assert {name: os.environ.get(name) for name in offscreen_variables()} == offscreen_variables()
        assert os.environ["SDL_VIDEODRIVER"] == "dummy"
    assert not any(name in os.environ for name in SCREENS)


def test_what_the_user_has_set_stays(no_screen, monkeypatch):
    monkeypatch.setenv("MUJOCO_GL", "glfw")
    with offscreen():
        assert os.environ["MUJOCO_GL"] == "glfw"
    assert os.environ["MUJOCO_GL"] == "glfw"


def test_where_there_is_a_screen_nothing_is_set(no_screen, monkeypatch):
    monkeypatch.setenv("DISPLAY", ":0")
    before = dict(os.environ)
    with offscreen():
        assert dict(os.environ) == before


@pytest.mark.slow
@pytest.mark.skipif("MUJOCO_GL" not in offscreen_variables(), reason="neither EGL nor OSMesa is installed")
def test_mujoco_draws_without_a_screen():
    env = {name: value for name, value in os.environ.items() if name not in SCREENS}
    done = subprocess.run([sys.executable, "-c", DRAW], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "(48, 64, 3) True"
