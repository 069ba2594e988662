"""Values are given the type an annotation asks for; annotations that cannot be judged let everything pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Optional, Protocol, TypeVar, Union

import pytest
import torch
from stable_baselines3.common.noise import ActionNoise

from lit_sb3_ray.config.signatures import check_keywords, coerce, signature_of
from lit_sb3_ray.errors import ConfigError


class Shape(Protocol):
    sides: int


class Base:
    def __init__(self, first: int, *, second: int = 2):
        self.total = first + second


class PassesOn(Base):
    def __init__(self, third: int = 3, **kwargs):
        super().__init__(**kwargs)


class TakesAll:
    def __init__(self, **kwargs):
        self.kwargs = kwargs


@pytest.mark.parametrize(
    ("value", "annotation", "expected"),
    [
        ("1e-3", float, 1e-3),
        (5, float, 5),
        (1e6, int, 1_000_000),
        ("1e6", int, 1_000_000),
        (1, bool, True),
        (None, Optional[int], None),  # noqa: UP045 - both spellings of a union occur
        ("auto", Union[str, float], "auto"),  # noqa: UP007
        ("0.5", str | float, 0.5),
        ([1, "episode"], int | tuple[int, str], (1, "episode")),
        (["2", "step"], int | tuple[int, str], (2, "step")),
        ((64, 64), list[int], (64, 64)),
        ([1, 2], tuple[int, ...], (1, 2)),
        ("dict(a=1)", dict[str, Any] | None, {"a": 1}),
        ("None", dict[str, Any] | None, None),
        ("nn.ReLU", type[torch.nn.Module], torch.nn.ReLU),
        ("None", type[torch.nn.Module] | None, None),
        (abs, Callable[[float], float], abs),
        ("3", "int | None", 3),
    ],
)
def test_coerces(value, annotation, expected):
    result = coerce(value, annotation, "key")
    assert result == expected
    assert type(result) is type(expected)


@pytest.mark.parametrize(
    "annotation", [Any, object, Literal["a"], TypeVar("T"), "Unknown", "int | Unknown", Shape, int | Shape]
)
def test_lets_pass_what_cannot_be_judged(annotation):
    value = object()
    assert coerce(value, annotation, "key") is value


@pytest.mark.parametrize(
    ("value", "annotation"),
    [
        (1.5, int),
        ("x", float),
        (2, bool),
        (True, int),
        (None, int),
        ([1], dict[str, int]),
        ([1, 2, 3], tuple[int, str]),
        ("nn.ReLU", type[torch.optim.Optimizer]),
        (3, ActionNoise | None),
        ("3", ActionNoise | None),
    ],
)
def test_refuses_other_types(value, annotation):
    with pytest.raises(ConfigError, match="key"):
        coerce(value, annotation, "key")


def test_signatures_follow_keywords_to_the_base():
    assert list(signature_of(PassesOn).parameters) == ["third", "first", "second"]
    assert not signature_of(PassesOn).is_open
    assert signature_of(TakesAll).is_open
    assert not signature_of(type("Plain", (), {})).is_open


def test_keywords_are_checked():
    check_keywords(PassesOn, {"first": 1}, set(), "key")
    check_keywords(TakesAll, {"anything": 1}, set(), "key")
    with pytest.raises(ConfigError, match=r"unknown PassesOn argument 'secnd'.*did you mean 'second'"):
        check_keywords(PassesOn, {"first": 1, "secnd": 2}, set(), "key")
    with pytest.raises(ConfigError, match="needs the argument 'first'"):
        check_keywords(PassesOn, {}, set(), "key")
    with pytest.raises(ConfigError, match="filled in by the program"):
        check_keywords(PassesOn, {"first": 1}, {"first"}, "key")
