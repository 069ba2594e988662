"""A pickle of listed names alone neither fills the memory, nor takes for ever, nor calls what no model calls."""

import collections
import io
import pickle

import gymnasium as gym
import numpy as np
import pytest
import torch
from hostile import zip_with
from numpy.random._pickle import __generator_ctor as generator_of
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.type_aliases import TrainFreq, TrainFrequencyUnit
from stable_baselines3.common.utils import LinearSchedule
from stable_baselines3.her.goal_selection_strategy import GoalSelectionStrategy
from torch._utils import _rebuild_tensor_v2

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.untrusted.pickles import read_pickle
from lit_sb3_ray.untrusted.sizes import MOST_VALUES
from lit_sb3_ray.untrusted.weights import check_weights


class Call:
    """Is pickled as a call."""

    def __init__(self, function, *arguments):
        self.reduced = function, arguments

    def __reduce__(self):
        return self.reduced


def part(value):
    """The middle of a pickle, to be put into another."""
    return pickle.dumps(value, 3)[2:-1]


def whole(*parts):
    return b"\x80\x03" + b"".join(parts) + b"."


CALLS = {
    "list": Call(list, [1]),
    "tuple": Call(tuple, [1]),
    "dict": Call(dict, [(1, 2)]),
    "bytes": Call(bytes, 100),
    "str": Call(str, 1),
    "range": Call(range, 10 * MOST_VALUES),
    "set of a range": Call(set, Call(range, 10)),
    "deque of a range": Call(collections.deque, Call(range, 10)),
    "array": Call(np.ndarray, (100,)),
    # numpy takes the bytes for the addresses of objects.
    "objects at addresses": Call(np.ndarray, (1,), "O", bytes(8)),
    "reconstructed": Call(np.zeros(1).__reduce__()[0], np.ndarray, (100,), b"b"),
    "layer": Call(torch.nn.Linear, 10, 10),
    "box": Call(gym.spaces.Box, 0.0, 1.0, (100,)),
    "buffer": Call(ReplayBuffer, 100, gym.spaces.Discrete(2), gym.spaces.Discrete(2)),
    "generator": Call(generator_of, "x", list),
    "sizes of a range": Call(torch.Size, Call(range, 10)),
    "tensor": Call(_rebuild_tensor_v2, torch.zeros(2)._typed_storage(), 0, (10**6,), (0,), False, {}),
}


@pytest.mark.parametrize("name", CALLS)
def test_listed_names_are_called_only_as_models_call_them(name):
    with pytest.raises(ConfigError, match=r"it holds a call of .* that no model needs"):
        read_pickle(pickle.dumps(CALLS[name], 4), "here")


@pytest.mark.parametrize(
    ("cls", "arguments"), [(np.ndarray, (100,)), (tuple, ([1],)), (bytes, (100,)), (np.random.MT19937, ())], ids=str
)
def test_only_classes_in_python_are_made_without_their_constructor(cls, arguments):
    with pytest.raises(ConfigError, match="made as no model needs it"):
        read_pickle(whole(part(cls), part(arguments), pickle.NEWOBJ), "here")


@pytest.mark.parametrize("code", [pickle.OBJ, pickle.NEWOBJ_EX])
def test_objects_are_made_in_no_other_way(code):
    middle = (b"(", part(list)) if code == pickle.OBJ else (part(list), part(()), part({}))
    with pytest.raises(ConfigError, match="cannot be read"):
        read_pickle(whole(*middle, code), "here")


def nested(depth):
    value = ()
    for _ in range(depth):
        value = (value, value)
    return value


@pytest.mark.parametrize("code", [pickle.SETITEM, pickle.SETITEMS, pickle.DICT, pickle.ADDITEMS, pickle.FROZENSET])
def test_keys_that_would_be_hashed_for_ever_are_refused(code):
    key = part(nested(16))
    content = {
        pickle.SETITEM: (b"}", key, b"N"),
        pickle.SETITEMS: (b"}(", key, b"N"),
        pickle.DICT: (b"(", key, b"N"),
        pickle.ADDITEMS: (pickle.EMPTY_SET, b"(", key),
        pickle.FROZENSET: (b"(", key),
    }[code]
    with pytest.raises(ConfigError, match="a tuple stands where a name or a number is expected"):
        read_pickle(whole(*content, code), "here")


def test_a_state_of_pairs_is_refused_too():
    bare = whole(part(gym.spaces.Box), b")", pickle.NEWOBJ, b"(", part(nested(16)), b"Nt\x85", pickle.BUILD)
    with pytest.raises(ConfigError, match="the state of a Box is a tuple"):
        read_pickle(bare, "here")


@pytest.mark.parametrize("depth", [15, 60])
def test_what_is_small_only_because_it_is_shared_is_refused(depth):
    value = nested(depth)
    if depth == 15:
        assert read_pickle(pickle.dumps(value), "here") == value
    else:
        with pytest.raises(ConfigError, match=f"it holds more than {MOST_VALUES} values"):
            read_pickle(pickle.dumps(value), "here")


def test_what_contains_itself_is_refused():
    value = []
    value.append(value)
    with pytest.raises(ConfigError, match="it contains itself"):
        read_pickle(pickle.dumps(value), "here")


def test_an_object_cannot_bring_along_what_is_called_to_fill_it():
    for name, code in (("append", b"K\x01" + pickle.APPEND), ("extend", b"(K\x01" + pickle.APPENDS)):
        schedule = (part(LinearSchedule), b")", pickle.NEWOBJ, b"}", part(name), part(list), b"s", pickle.BUILD)
        with pytest.raises(ConfigError, match="a LinearSchedule is no list"):
            read_pickle(whole(*schedule, code), "here")
    schedule = (part(LinearSchedule), b")", pickle.NEWOBJ, b"}", part("__setstate__"), part(list), b"s", pickle.BUILD)
    with pytest.raises(ConfigError, match="brings along how its state is set"):
        read_pickle(whole(*schedule, part([1]), pickle.BUILD), "here")


def test_members_of_enumerations_are_read_as_any_python_writes_them_and_are_not_changed():
    for member in (TrainFrequencyUnit.STEP, GoalSelectionStrategy.FUTURE):
        for written in (Call(type(member), member.value), Call(getattr, type(member), member.name)):
            assert read_pickle(pickle.dumps(written, 4), "here") is member
    frequency = TrainFreq(1, TrainFrequencyUnit.STEP)
    assert read_pickle(pickle.dumps(frequency), "here") == frequency
    changed = whole(part(TrainFrequencyUnit.STEP), b"}", part("_value_"), part("episode"), b"s", pickle.BUILD)
    with pytest.raises(ConfigError, match=r"a change of .*TrainFrequencyUnit"):
        read_pickle(changed, "here")
    assert TrainFrequencyUnit.STEP.value == "step"


@pytest.mark.parametrize("arguments", [(dict, "pop"), (TrainFrequencyUnit, "mro"), (np.zeros(1), "tofile")], ids=str)
def test_nothing_else_is_taken_by_its_name_in_another(arguments):
    with pytest.raises(ConfigError, match="cannot be read"):
        read_pickle(pickle.dumps(Call(getattr, *arguments), 4), "here")


def test_an_array_has_the_elements_that_are_there():
    class Endless:
        def __reduce__(self):
            return (*np.zeros(1).__reduce__()[:2], (1, (10**6,), np.dtype("S0"), False, b""))

    with pytest.raises(ConfigError, match="an array of elements without bytes"):
        read_pickle(pickle.dumps(Endless()), "here")


def saved(value, old_format):
    file = io.BytesIO()
    torch.save(value, file, _use_new_zipfile_serialization=not old_format)
    return file.getvalue()


@pytest.mark.parametrize("old_format", [False, True])
def test_weights_hold_tensors_and_nothing_that_makes_room(tmp_path, old_format):
    weights = {"w": torch.nn.Parameter(torch.zeros(3)), "n": torch.ones(2, dtype=torch.int64), "lr": 0.1, "betas": (0.9, 0.99)}
    check_weights(zip_with(tmp_path / "good.zip", "policy.pth", content=saved(weights, old_format)))
    for value in (Call(bytearray, 10), Call(set, torch.zeros(2)), Call(torch.Size, (1, 2))):
        path = zip_with(tmp_path / "bad.zip", "policy.pth", content=saved({"w": value}, old_format))
        with pytest.raises(ConfigError, match=r"bad\.zip \(policy\.pth\) was refused: it holds .*, which no weights need"):
            check_weights(path)


def test_an_archive_in_an_archive_is_looked_over(tmp_path):
    inner = zip_with(tmp_path / "inner.zip", "policy/data/0", content=bytes(32 * 2**20)).read_bytes()
    with pytest.raises(ConfigError, match=r"\(policy\.pth\) was refused: 'policy/data/0' in it would unpack to 33,"):
        check_weights(zip_with(tmp_path / "bad.zip", "policy.pth", content=inner))
    storage = Call(torch.storage._load_from_bytes, inner)
    with pytest.raises(ConfigError, match="a tensor whose memory is not as it is in a pickle"):
        read_pickle(pickle.dumps(storage), "here")
