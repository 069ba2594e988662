"""Reading pickles with a list: what models hold comes back as it was, and whatever is not listed is refused and not run."""

import collections
import os
import pickle
import re
import struct
import sys
import tracemalloc
import types

import cloudpickle
import gymnasium as gym
import numpy as np
import pytest
import torch
from hostile import hostile_pickle
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.running_mean_std import RunningMeanStd

from lit_sb3_ray.config.schedules import LinearSchedule
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.untrusted import classes
from lit_sb3_ray.untrusted.pickles import read_pickle


def named(module, name):
    """A pickle of a name, which may be a path of names."""
    texts = b"".join(b"\x8c" + bytes([len(text)]) + text.encode() for text in (module, name))
    return b"\x80\x04" + texts + b"\x93."


def read(value):
    return read_pickle(pickle.dumps(value), "here")


def same(one, other):
    if isinstance(one, np.ndarray | torch.Tensor):
        return type(one) is type(other) and one.dtype == other.dtype and bool((one == other).all())
    return type(one) is type(other) and one == other


PLAIN = [
    np.arange(6, dtype=np.float32).reshape(2, 3),
    np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    np.arange(3, dtype=">i4"),
    np.array([True, False]),
    np.array(["ab", "c"]),
    np.array([b"ab", b"c"]),
    np.zeros((0, 4), np.uint8),
    np.float64(1.5),
    np.int64(-3),
    np.bool_(True),
    np.float32,
    np.dtype("f4"),
    torch.arange(4.0),
    torch.float32,
    torch.device("cpu"),
    torch.nn.ReLU,
    torch.optim.Adam,
    collections.deque([{"r": 1.0, "l": 5, "t": 0.1}], maxlen=100),
    collections.OrderedDict(a=1),
    {"a": {1, 2}, "b": frozenset({3}), "c": (1j, b"x", None)},
    LinearSchedule(0.1, 0.0),
    gym.spaces.Box(-1.0, 1.0, (2,), np.float32),
    gym.spaces.Dict({"a": gym.spaces.Discrete(3, start=1), "b": gym.spaces.MultiDiscrete([2, 3])}),
    gym.spaces.Tuple([gym.spaces.MultiBinary(4), gym.spaces.Text(5)]),
]


@pytest.mark.parametrize("value", PLAIN, ids=lambda value: re.sub(r"\W+", "_", repr(value))[:40])
@pytest.mark.parametrize("protocol", [3, 4, 5])
def test_what_models_hold_comes_back_as_it_was(value, protocol):
    content = pickle.dumps(value, protocol)
    assert same(read_pickle(content, "here"), pickle.loads(content))


@pytest.mark.parametrize("generator", [np.random.default_rng(3), np.random.RandomState(3)], ids=["generator", "legacy"])
def test_generators_go_on_where_they_were(generator):
    loaded = read(generator)
    assert loaded.normal(size=5).tolist() == generator.normal(size=5).tolist()


def test_a_seeded_space_and_noise_and_statistics_come_back():
    space = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)
    space.seed(5)
    loaded = read(space)
    assert np.array_equal(loaded.sample(), space.sample())
    assert read(NormalActionNoise(np.zeros(2), np.ones(2)))().shape == (2,)
    statistics = RunningMeanStd(shape=(2,))
    statistics.update(np.ones((3, 2)))
    assert np.array_equal(read(statistics).mean, statistics.mean)


def test_names_of_older_versions_are_understood(monkeypatch):
    old = types.ModuleType("gym.spaces.box")
    old.Box = type("Box", (gym.spaces.Box,), {"__module__": old.__name__})
    for name in ("gym", "gym.spaces", old.__name__):
        monkeypatch.setitem(sys.modules, name, old)
    content = pickle.dumps(old.Box(-1.0, 1.0, (2,), np.float32))
    assert b"gym.spaces.box" in content
    assert read_pickle(content, "here") == gym.spaces.Box(-1.0, 1.0, (2,), np.float32)


def test_a_command_is_refused_and_not_run(tmp_path):
    made = tmp_path / "made"
    with pytest.raises(ConfigError, match=r"^here was refused and not run: it holds posix\.system, .*--trust") as caught:
        read_pickle(hostile_pickle(made), "here")
    assert "\n" not in str(caught.value)
    assert not made.exists()
    pickle.loads(hostile_pickle(made))
    assert made.exists()


@pytest.mark.parametrize(
    "content",
    [
        cloudpickle.dumps(lambda progress: progress),
        pickle.dumps(eval),
        pickle.dumps(os.system),
        pickle.dumps(np.load),
        pickle.dumps(torch.load),
        pickle.dumps(type),
        pickle.dumps(collections.Counter("a")),
        # Names that lead from a listed one to another.
        named("collections", "deque.__new__"),
        named("collections", "OrderedDict.pop"),
        named("lit_sb3_ray.untrusted.classes", "ALLOWED.clear"),
        b"ctorch.hub\nload\n.",
    ],
    ids=lambda content: re.sub(rb"\W+", b"_", content)[-24:].decode(),
)
def test_whatever_is_not_listed_is_refused(content):
    with pytest.raises(ConfigError, match="refused and not run"):
        read_pickle(content, "here")


def test_listed_classes_cannot_be_changed():
    before = dict(vars(RunningMeanStd))
    module = b"stable_baselines3.common.running_mean_std"
    # The state of a class: (None, {"update": "changed"}).
    content = b"\x80\x04\x8c" + bytes([len(module)]) + module + b"\x8c\x0eRunningMeanStd\x93N}\x8c\x06update\x8c\x07changed"
    with pytest.raises(ConfigError, match="refused and not run: it holds a change of"):
        read_pickle(content + b"s\x86b.", "here")
    assert dict(vars(RunningMeanStd)) == before


def dtype_with(*state):
    """A data type of eight bytes with a state of its own."""

    class Lying:
        def __reduce__(self):
            return np.dtype, ("f8", False, True), state

    return pickle.dumps(Lying())


def test_data_types_are_not_taken_at_their_word():
    loaded = read_pickle(dtype_with(3, "<", None, None, None, 4096, 1, 63), "here")
    assert (loaded.itemsize, loaded.flags, loaded) == (8, 0, np.dtype("f8"))
    with pytest.raises(ConfigError, match="byte order cannot be"):
        read_pickle(dtype_with(3, 7, None, None, None, -1, -1, 0), "here")


@pytest.mark.parametrize(
    "value",
    [np.array([{}], object), np.array([(1, 2.0)], "i4,f8"), np.array(["2020-01-01"], "M8[D]"), np.zeros(2, "i4,O")],
    ids=["objects", "records", "dates", "records_of_objects"],
)
def test_arrays_of_anything_but_numbers_and_text_are_refused(value):
    with pytest.raises(ConfigError, match="cannot be read"):
        read(value)


@pytest.mark.parametrize(
    "content", [b"", b"junk", b"\x80\x05.", b"\x80\x05K\x01", pickle.dumps([1, 2])[:-4], b"Pid\n.", b"(" * 9]
)
def test_damaged_pickles_are_told_in_one_line(content):
    with pytest.raises(ConfigError, match=r"^here cannot be read: \w+") as caught:
        read_pickle(content, "here")
    assert "\n" not in str(caught.value)


def test_all_that_is_listed_is_there():
    for module, names in classes.ALLOWED.items():
        for name in names:
            assert classes.look_up(module, name) is not None


def test_python_s_own_reader_takes_its_steps_from_a_table():
    assert pickle._Unpickler.dispatch[pickle.BUILD[0]] is pickle._Unpickler.load_build


def test_room_is_made_for_bytes_that_are_there_and_no_others():
    array = np.arange(1000.0)
    whole = pickle.dumps(array, 5)
    assert pickle.BYTEARRAY8 in whole
    assert same(read_pickle(whole, "here"), array)
    assert read_pickle(pickle.dumps(bytearray(b"abc"), 5), "here") == bytearray(b"abc")
    for length in (8001, 2**40, 2**64 - 1):
        lying = whole.replace(struct.pack("<Q", array.nbytes), struct.pack("<Q", length))
        assert lying != whole
        tracemalloc.start()
        try:
            with pytest.raises(ConfigError, match="cannot be read"):
                read_pickle(lying, "here")
            assert tracemalloc.get_traced_memory()[1] < 2**20
        finally:
            tracemalloc.stop()
