"""SB3's contract of a VecEnv, the same for all that keep it: DummyVecEnv is the measure."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv
from vec.catalogue import ACTIONS, OBSERVATIONS, Shell, build

from lit_sb3_ray.vec.ray_vec_env import RayVecEnv

N_ENVS = 4
BACKENDS = {
    "dummy": DummyVecEnv,
    "subproc": SubprocVecEnv,
    "shared, 1 an actor": partial(RayVecEnv, envs_per_actor=1),
    "shared, 3 an actor": partial(RayVecEnv, envs_per_actor=3),
    "calls, 2 an actor": partial(RayVecEnv, envs_per_actor=2, transport="calls"),
    "calls, 1 an actor": partial(RayVecEnv, envs_per_actor=1, transport="calls"),
    "auto": RayVecEnv,
}


def assert_same(ours, theirs):
    """Compares anything that environments return, types of arrays included."""
    if isinstance(theirs, np.ndarray):
        assert isinstance(ours, np.ndarray)
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)
    elif isinstance(theirs, dict):
        assert ours.keys() == theirs.keys()
        for key, value in theirs.items():
            assert_same(ours[key], value)
    elif isinstance(theirs, list | tuple):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            assert_same(one, other)
    else:
        assert ours == theirs


def assert_same_steps(ours, theirs, steps):
    """Plays the same random actions in both; returns how many episodes have ended by either kind of end."""
    ours.seed(11)
    theirs.seed(11)
    assert_same(ours.reset(), theirs.reset())
    assert_same(list(ours.reset_infos), theirs.reset_infos)
    theirs.action_space.seed(5)
    terminated = truncated = 0
    for _ in range(steps):
        actions = np.stack([theirs.action_space.sample() for _ in range(theirs.num_envs)])
        observations, rewards, dones, infos = ours.step(actions)
        expected = theirs.step(actions)
        assert_same(observations, expected[0])
        assert_same(rewards.astype(np.float32) if isinstance(ours, SubprocVecEnv) else rewards, expected[1])
        assert_same(dones, expected[2])
        assert_same(list(infos), expected[3])
        assert_same(list(ours.reset_infos), theirs.reset_infos)
        truncated += sum(info["TimeLimit.truncated"] for info in infos)
        terminated += int(dones.sum())
    return terminated - truncated, truncated


@pytest.fixture(params=BACKENDS, scope="class")
def venv(request):
    """The VecEnv under test, shared by the tests of a class."""
    venv = BACKENDS[request.param]([partial(build, "dict", "box", render_mode="rgb_array")] * N_ENVS)
    yield venv
    venv.close()
    venv.close()


@pytest.fixture
def dummy():
    """The measure."""
    return DummyVecEnv([partial(build, "dict", "box", render_mode="rgb_array")] * N_ENVS)


@pytest.fixture(params=[name for name in BACKENDS if name not in ("dummy", "subproc")], scope="class")
def ours(request):
    """A RayVecEnv, shared by the tests of a class."""
    venv = BACKENDS[request.param]([build] * N_ENVS)
    yield venv
    venv.close()


@pytest.mark.usefixtures("ray_instance")
class TestContract:
    """What a VecEnv must do, whatever steps it."""

    def test_says_what_it_is(self, venv, dummy):
        assert venv.num_envs == N_ENVS
        assert venv.observation_space == dummy.observation_space
        assert venv.action_space == dummy.action_space
        assert venv.render_mode == "rgb_array"
        if not isinstance(venv, SubprocVecEnv):
            assert venv.metadata == dummy.metadata

    def test_a_thousand_random_steps_are_those_of_dummy(self, venv, dummy):
        terminated, truncated = assert_same_steps(venv, dummy, 1000)
        assert terminated > 50
        assert truncated > 50

    def test_seeds_are_for_one_reset(self, venv):
        assert list(venv.seed(21)) == [21, 22, 23, 24]
        venv.reset()
        assert [seeds[-1] for seeds in venv.get_attr("seeds")] == [21, 22, 23, 24]
        venv.reset()
        assert [seeds[-1] for seeds in venv.get_attr("seeds")] == [None] * N_ENVS

    def test_a_seed_of_none_draws_different_seeds_from_numpy(self, venv):
        np.random.seed(0)
        first = list(venv.seed(None))
        np.random.seed(0)
        assert list(venv.seed(None)) == first
        assert len(set(first)) == N_ENVS

    def test_options_are_for_one_reset(self, venv):
        venv.set_options({"wind": 1})
        venv.reset()
        assert [options[-1] for options in venv.get_attr("options")] == [{"wind": 1}] * N_ENVS
        venv.set_options([{"wind": index} for index in range(N_ENVS)])
        venv.reset()
        assert [options[-1] for options in venv.get_attr("options")] == [{"wind": index} for index in range(N_ENVS)]
        venv.reset()
        assert [options[-1] for options in venv.get_attr("options")] == [None] * N_ENVS

    @pytest.mark.parametrize("indices", [None, 2, [1], [3, 0], [-1, 1], [2, 2], range(1, 3), ()])
    def test_attributes_and_methods_take_indices(self, venv, dummy, indices):
        for each in (venv, dummy):
            for index in range(N_ENVS):
                each.set_attr("tag", index * 10, indices=index)
            each.set_attr("level", 5)
            each.set_attr("level", 7, indices=indices)
        for ask in (
            lambda each: each.get_attr("tag", indices),
            lambda each: each.get_attr("level"),
            lambda each: each.env_method("add", 2, times=3, indices=indices),
            lambda each: each.env_is_wrapped(Shell, indices),
            lambda each: each.env_is_wrapped(TimeLimit, indices),
        ):
            assert_same(ask(venv), ask(dummy))

    def test_an_index_too_large_is_an_error(self, venv):
        with pytest.raises(IndexError):
            venv.get_attr("level", N_ENVS)

    def test_attributes_of_wrappers_are_found_and_missing_ones_are_not(self, venv):
        assert venv.get_attr("inner_name") == ["shell"] * N_ENVS
        assert venv.has_attr("inner_name")
        assert venv.has_attr("level")
        assert not venv.has_attr("nothing_of_that_name")

    def test_images_are_those_of_dummy(self, venv, dummy):
        for each in (venv, dummy):
            each.seed(4)
            each.reset()
        assert_same(list(venv.get_images()), dummy.get_images())
        assert_same(venv.render("rgb_array"), dummy.render("rgb_array"))

    def test_what_was_returned_stays_as_it_was(self, venv):
        venv.seed(0)
        kept = venv.reset()
        copies = {key: value.copy() for key, value in kept.items()}
        steps = []
        for _ in range(20):
            result = venv.step(np.zeros((N_ENVS, 2), np.float32))
            steps.append((result, {key: value.copy() for key, value in result[0].items()}, result[1].copy(), result[2].copy()))
        assert_same(kept, copies)
        for result, *expected in steps:
            assert_same(list(result[:3]), expected)

    @pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
    def test_actions_arrive_as_they_are(self, venv, dtype):
        venv.reset()
        actions = (np.arange(N_ENVS * 2).reshape(N_ENVS, 2) * 10 / 3).astype(dtype)
        venv.step(actions)
        assert_same(np.stack(venv.get_attr("last_action")), actions)

    def test_actions_of_an_odd_shape_arrive_too(self, venv):
        venv.reset()
        venv.step([[0.5], [1.5], [2.5], [3.5]])
        assert venv.get_attr("last_action") == [[0.5], [1.5], [2.5], [3.5]]

    def test_large_values_travel(self, venv):
        for values in venv.env_method("big", 100_000):
            assert_same(values, np.arange(100_000))
        venv.set_attr("table", np.arange(50_000))
        assert_same(venv.get_attr("table", 3), [np.arange(50_000)])


@pytest.mark.usefixtures("ray_instance")
class TestOurs:
    """What RayVecEnv promises beyond SubprocVecEnv."""

    def test_rewards_and_dones_have_the_types_of_dummy(self, ours):
        ours.reset()
        _, rewards, dones, infos = ours.step(np.zeros(N_ENVS, np.int64))
        assert rewards.dtype == np.float32
        assert dones.dtype == np.bool_
        assert isinstance(infos, list)

    def test_an_exception_of_a_method_is_the_environments_own_and_ends_nothing(self, ours):
        with pytest.raises(ValueError, match="no such thing") as caught:
            ours.env_method("fail", indices=[1, 2])
        assert "environment 1" in "".join(caught.value.__notes__)
        assert "in fail" in "".join(caught.value.__notes__)
        with pytest.raises(AttributeError):
            ours.get_attr("nothing_of_that_name")
        ours.reset()
        ours.step(np.zeros(N_ENVS, np.int64))

    def test_images_need_the_right_mode(self, ours):
        with pytest.warns(UserWarning, match="rgb_array"):
            assert ours.get_images() == [None] * N_ENVS

    def test_a_reset_may_break_off_a_step(self, ours):
        ours.seed(3)
        expected = ours.reset()
        ours.step_async(np.zeros(N_ENVS, np.int64))
        ours.seed(3)
        assert_same(ours.reset(), expected)
        with pytest.raises(RuntimeError, match="step_async"):
            ours.step_wait()


@pytest.mark.usefixtures("ray_instance")
@pytest.mark.parametrize("transport", ["shared", "calls"])
@pytest.mark.parametrize("action", ["discrete", "box64"])
def test_every_kind_of_observation_gives_the_steps_of_dummy(transport, action):
    """One actor for each kind, and the learner's share beside it, so that rows of both are in every array."""
    for observation in OBSERVATIONS:
        builders = [partial(build, observation, action)] * 3
        ours, theirs = RayVecEnv(builders, envs_per_actor=3, transport=transport), DummyVecEnv(builders)
        try:
            assert_same_steps(ours, theirs, 100)
        finally:
            ours.close()


@pytest.mark.usefixtures("ray_instance")
@pytest.mark.parametrize("action", ACTIONS)
def test_every_kind_of_action_gives_the_steps_of_dummy(action):
    builders = [partial(build, "vector", action, infos=False)] * 4
    ours, theirs = RayVecEnv(builders), DummyVecEnv(builders)
    try:
        assert_same_steps(ours, theirs, 200)
    finally:
        ours.close()
