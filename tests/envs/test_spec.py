"""A recipe builds what SB3's make_vec_env builds, travels between processes, and refuses what an environment cannot take."""

from __future__ import annotations

import importlib
import pickle
import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3.common.monitor import Monitor

import tiny_envs
from lit_sb3_ray.envs.spec import EnvSpec
from lit_sb3_ray.envs.wrappers import FrameSkip, HistoryWrapper, YAMLCompatResizeObservation
from lit_sb3_ray.errors import ConfigError

ROOT = Path(__file__).resolve().parents[2]


def layers(env):
    """Names of the wrappers, the outermost first."""
    names = []
    while isinstance(env, gym.Wrapper):
        names.append(type(env).__name__)
        env = env.env
    return names


def test_wrappers_come_in_list_order_around_the_monitor():
    env = EnvSpec("TinyCount-v0", wrappers=((FrameSkip, {"skip": 2}), (HistoryWrapper, {"horizon": 3}))).make(seed=0)
    assert layers(env)[:3] == ["HistoryWrapper", "FrameSkip", "GuardedMonitor"]
    env.reset(seed=0)
    *_, info = env.step(np.zeros(1, np.float32))
    while "episode" not in info:
        *_, info = env.step(np.zeros(1, np.float32))
    assert (info["episode"]["r"], info["episode"]["l"]) == (15.0, 5)  # What is below the wrappers.


def test_the_action_space_is_seeded_with_seed_plus_rank():
    for rank in range(3):
        expected = gym.make("Pendulum-v1")
        expected.action_space.seed(11 + rank)
        got = EnvSpec("Pendulum-v1").make(seed=11, rank=rank)
        np.testing.assert_array_equal(got.action_space.sample(), expected.action_space.sample())


def test_arguments_reach_the_constructor_and_no_render_mode_is_added():
    env = EnvSpec("TinyCount-v0", {"length": 2}).make()
    assert env.unwrapped.length == 2
    assert env.render_mode is None
    assert EnvSpec("TinyCount-v0", {"render_mode": "rgb_array"}).make().render_mode == "rgb_array"


def test_max_episode_steps_is_gymnasiums():
    env = EnvSpec("Pendulum-v1", {"render_mode": None, "max_episode_steps": 3}).make()
    env.reset(seed=0)
    assert [env.step(np.zeros(1))[3] for _ in range(3)] == [False, False, True]
    assert "TimeLimit" not in layers(EnvSpec("CartPole-v1", {"max_episode_steps": -1}).make())


def test_the_monitors_keywords_may_be_lists_as_yaml_has_them():
    env = EnvSpec("TinyCount-v0", monitor_kwargs={"info_keywords": ["is_success"], "allow_early_resets": False}).make()
    assert isinstance(env, Monitor)
    env.reset(seed=0)
    for _ in range(5):
        *_, info = env.step(np.zeros(1, np.float32))
    assert info["episode"]["is_success"] is True


def test_equal_recipes_are_equal_wherever_they_were_read():
    one = EnvSpec("CartPole-v1", {"render_mode": None}, where="a.yml")
    assert one == EnvSpec("CartPole-v1", {"render_mode": None}, where="--env-kwargs")
    assert one != EnvSpec("CartPole-v1")


def test_factories_are_picklable_and_carry_the_rank():
    spec = EnvSpec("TinyCount-v0", {"length": 3}, wrappers=((HistoryWrapper, {}),))
    for rank, factory in enumerate(pickle.loads(pickle.dumps(spec.factories(3, seed=5)))):
        env = factory()
        expected = gym.make("TinyCount-v0")
        expected.action_space.seed(5 + rank)
        assert env.action_space.sample() == expected.action_space.sample()
        assert layers(env)[0] == "HistoryWrapper"


def test_a_factory_builds_in_a_process_where_nothing_is_registered(tmp_path):
    gym.register(id="OnlyHere-v0", entry_point="tiny_envs:CountEnv", kwargs={"length": 4})
    try:
        specs = [EnvSpec("OnlyHere-v0"), EnvSpec("PendulumNoVel-v1"), EnvSpec("TinyGoal-v0", packages=("tiny_envs",))]
        (tmp_path / "factories.pkl").write_bytes(pickle.dumps([spec.factories(1, seed=0)[0] for spec in specs]))
    finally:
        gym.registry.pop("OnlyHere-v0")
    code = f"""
import pickle, sys
sys.path[:0] = {[str(ROOT), str(ROOT / "tests")]!r}
one, two, three = [factory() for factory in pickle.load(open({str(tmp_path / "factories.pkl")!r}, 'rb'))]
print(one.unwrapped.length, abs(two.reset(seed=0)[0][2]), list(three.observation_space))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "4 0.0 ['achieved_goal', 'desired_goal', 'observation']"


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (EnvSpec("CartPol-v1"), "unknown environment 'CartPol-v1': did you mean 'CartPole-v1'?"),
        (
            EnvSpec("TinyCount-v0", {"lenght": 3}, where="--env-kwargs"),
            "unknown env_kwargs key of TinyCount-v0 'lenght' (--env-kwargs): did you mean 'length'?",
        ),
        (EnvSpec("TinyCount-v0", {"max_episode_step": 3}), "did you mean 'max_episode_steps'?"),
        (EnvSpec("CartPole-v1", {"max_episode_steps": 1.5}), "must be a positive integer, got 1.5"),
        (EnvSpec("CartPole-v1", {"max_episode_steps": True}), "must be a positive integer, got True"),
        (EnvSpec("CartPole-v1", {"max_episode_steps": 0}), "must be a positive integer, got 0"),
        (
            EnvSpec("TinyCount-v0", wrappers=((FrameSkip, {"skp": 2}),)),
            "unknown argument of FrameSkip 'skp': did you mean 'skip'?",
        ),
        (EnvSpec("TinyImage-v0", wrappers=((YAMLCompatResizeObservation, {}),)), "missing argument of YAMLCompat"),
        (EnvSpec("CartPole-v1", monitor_kwargs={"info_keyword": ["x"]}), "did you mean 'info_keywords'?"),
    ],
)
def test_what_is_wrong_is_told_before_anything_is_built(spec, text, monkeypatch):
    monkeypatch.setattr(gym, "make", None)
    with pytest.raises(ConfigError) as refused:
        spec.check()
    assert text in str(refused.value)
    assert "\n" not in str(refused.value)


def test_an_argument_that_only_the_constructor_can_refuse_is_told_too():
    with pytest.raises(ConfigError, match=r"env_kwargs key of HalfCheetah-v5 'frameskip'.*'frame_skip'"):
        EnvSpec("HalfCheetah-v5", {"frameskip": 3}).make()


def test_an_env_that_moved_away_names_its_successor():
    with pytest.raises(ConfigError, match=r"'HalfCheetah-v2' cannot be built: .*there is 'HalfCheetah-v5'"):
        EnvSpec("HalfCheetah-v2").make()


def test_a_fault_of_the_env_itself_is_not_taken_for_a_wrong_argument():
    def broken(length=1):
        return dict(lenght=length).missing(length=length)

    gym.register(id="Broken-v0", entry_point=broken)
    try:
        with pytest.raises(ConfigError, match="'Broken-v0' cannot be built: AttributeError") as caught:
            EnvSpec("Broken-v0", {"length": 2}).make()
        assert isinstance(caught.value.__cause__, AttributeError)
    finally:
        gym.registry.pop("Broken-v0")


def test_the_env_is_closed_when_a_wrapper_fails(monkeypatch):
    closed = []
    monkeypatch.setattr(tiny_envs.CountEnv, "close", lambda self: closed.append(self), raising=False)
    with pytest.raises(ConfigError):
        EnvSpec("TinyCount-v0", wrappers=((HistoryWrapper, {"horizon": 0}),)).make()
    assert len(closed) == 1


def test_an_observation_with_a_text_in_it_is_refused():
    class Talking(gym.Wrapper):
        def __init__(self, env):
            super().__init__(env)
            self.observation_space = gym.spaces.Dict({"mission": gym.spaces.Text(9), "image": env.observation_space})

    with pytest.raises(ConfigError, match="the observation of TinyImage-v0 holds 'mission', which is Text"):
        EnvSpec("TinyImage-v0", wrappers=((Talking, {}),)).make()


def test_the_wrapper_that_minigrid_needs_is_named_and_helps():
    with pytest.raises(ConfigError, match=r"by an env_wrapper, such as minigrid\.wrappers\.FlatObsWrapper"):
        EnvSpec("MiniGrid-Empty-5x5-v0").make()
    wrappers = importlib.import_module("minigrid.wrappers")
    env = EnvSpec("MiniGrid-Empty-5x5-v0", wrappers=((wrappers.FlatObsWrapper, {}),)).make()
    assert isinstance(env.observation_space, gym.spaces.Box)
    env.close()


def test_no_environments_at_all_are_refused():
    with pytest.raises(ConfigError, match="at least 1, got 0"):
        EnvSpec("CartPole-v1").factories(0)


@pytest.mark.parametrize("fault", [ValueError, AssertionError, AttributeError, TypeError, KeyError])
def test_a_wrapper_that_cannot_be_built_is_named_with_its_env(fault):
    class Picky(gym.Wrapper):
        def __init__(self, env):
            raise fault("no\nway")

    with pytest.raises(ConfigError, match=r"Picky cannot be put around TinyCount-v0 \(x.yml\): .*no.*way") as caught:
        EnvSpec("TinyCount-v0", wrappers=((Picky, {}),), where="x.yml").make()
    assert isinstance(caught.value.__cause__, fault)
    assert "\n" not in str(caught.value)


def test_a_tuple_of_observations_is_refused():
    class Pair(gym.Wrapper):
        def __init__(self, env):
            super().__init__(env)
            self.observation_space = gym.spaces.Tuple([env.observation_space, env.observation_space])

    with pytest.raises(ConfigError, match="the observation of TinyCount-v0 is a Tuple, which no policy takes"):
        EnvSpec("TinyCount-v0", wrappers=((Pair, {}),)).make()


@pytest.mark.parametrize(("env_id", "taken"), [("TinyCount-v0", True), ("TinyMask-v0", False), ("TinyFailing-v0", True)])
def test_a_recipe_knows_which_arguments_the_constructor_takes(env_id, taken):
    assert EnvSpec(env_id).takes("render_mode") is taken
