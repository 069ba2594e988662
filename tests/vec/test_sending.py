"""Functions that build environments are sent whole, or refused with what is wrong with them."""

from __future__ import annotations

import sys
import threading
from functools import partial

import gymnasium as gym
import pytest
from vec.fault_envs import Steady

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.vec.ray_vec_env import RayVecEnv
from lit_sb3_ray.vec.sending import build_pickled, pickle_builder


def test_classes_and_functions_that_no_module_has_are_sent():
    class Local(Steady):
        def step(self, action):
            return super().step(action)

    env = build_pickled(pickle_builder(lambda: Local(3), 0))
    assert env.index == 3
    assert type(env).__name__ == "Local"


def test_the_object_that_cannot_be_sent_is_named():
    lock = threading.Lock()
    with pytest.raises(ConfigError, match=r"environment 5 .*argument 'flag' of the function that builds it, a lock"):
        pickle_builder(partial(Steady, 0, flag=lock), 5)
    with pytest.raises(ConfigError, match=r"variable 'lock' of the function that builds it, a lock"):
        pickle_builder(lambda: Steady(0, flag=lock), 0)
    with pytest.raises(ConfigError, match=r"entry 'deep' of argument 'flag' of"):
        pickle_builder(partial(Steady, 0, flag={"deep": [lock]}), 0)


@pytest.mark.usefixtures("ray_instance")
def test_it_is_refused_before_anything_is_started():
    with pytest.raises(ConfigError, match="environment 1 cannot be sent"):
        RayVecEnv([partial(Steady, 0), partial(Steady, 1, flag=threading.Lock())], envs_per_actor=1)


@pytest.mark.usefixtures("ray_instance")
@pytest.mark.parametrize("transport", ["shared", "calls"])
def test_what_a_script_defines_means_the_same_in_its_actors(transport, monkeypatch):
    """By its name alone it would be looked for in the actor's own main module."""

    class OfAScript(gym.Wrapper):
        pass

    OfAScript.__module__, OfAScript.__qualname__ = "__main__", "OfAScript"
    monkeypatch.setattr(sys.modules["__main__"], "OfAScript", OfAScript, raising=False)
    venv = RayVecEnv([lambda: OfAScript(Steady(0)), lambda: Steady(1)], envs_per_actor=1, transport=transport)
    try:
        assert venv.env_is_wrapped(OfAScript) == [True, False]
        venv.set_attr("made_by", OfAScript)
        assert venv.get_attr("made_by") == [OfAScript] * 2
    finally:
        venv.close()
