"""Expressions give rl_zoo3's values, and whatever is not on the list is refused uncalled."""

from __future__ import annotations

import math

import pytest
import torch
from stable_baselines3 import HerReplayBuffer
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.sb2_compat.rmsprop_tf_like import RMSpropTFLike
from stable_baselines3.common.torch_layers import NatureCNN

from lit_sb3_ray.config.expressions import parse_expression
from lit_sb3_ray.errors import ConfigError

WHERE = "policy_kwargs, own.yml, entry 'CartPole-v1'"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("dict(net_arch=[64, 64], activation_fn=nn.ReLU)", {"net_arch": [64, 64], "activation_fn": torch.nn.ReLU}),
        (
            "dict( log_std_init=-2.7,\n net_arch=dict(pi=[256], vf=[256]) )",
            {"log_std_init": -2.7, "net_arch": {"pi": [256], "vf": [256]}},
        ),
        (
            "dict(optimizer_class=RMSpropTFLike, optimizer_kwargs=dict(eps=1e-5))",
            {"optimizer_class": RMSpropTFLike, "optimizer_kwargs": {"eps": 1e-5}},
        ),
        ("{'norm_obs': False, 'norm_reward': True}", {"norm_obs": False, "norm_reward": True}),
        ("HerReplayBuffer", HerReplayBuffer),
        ("th.optim.AdamW", torch.optim.AdamW),
        ("torch.nn.GELU", torch.nn.GELU),
        ("stable_baselines3.common.torch_layers.NatureCNN", NatureCNN),
        ("sb3.common.buffers.ReplayBuffer", ReplayBuffer),
        ("(1, 'episode')", (1, "episode")),
        ("tuple([1, 2])", (1, 2)),
        ("list((1, 2))", [1, 2]),
        ("dict()", {}),
        ("2 * 10**3 + 4 // 2 - 1 % 2", 2001),
        ("-np.inf", -math.inf),
        ("[True, None, 'a', 1e-5]", [True, None, "a", 1e-5]),
    ],
)
def test_reads_values(text, expected):
    assert parse_expression(text, WHERE) == expected


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('touch {}')",
        "dict(net_arch=__import__('os').system('touch {}'))",
        "dict(a=[open('{}', 'w')])",
        "open('{}', 'w').close",
        "nn.Linear(open('{}', 'w'), 2)",
        "(lambda: open('{}', 'w'))()",
        "[open('{}', 'w') for _ in [1]]",
        "dict(**{{'a': open('{}', 'w')}})",
        "dict([open('{}', 'w')])",
        "f\"{{open('{}', 'w')}}\"",
        "(x := open('{}', 'w'))",
        "1 if open('{}', 'w') else 2",
    ],
)
def test_a_call_is_never_made(text, tmp_path):
    trace = tmp_path / "trace"
    with pytest.raises(ConfigError, match=r"policy_kwargs, own\.yml, entry 'CartPole-v1'"):
        parse_expression(text.format(trace), WHERE)
    assert not trace.exists()


def test_names_the_refused_piece():
    with pytest.raises(ConfigError, match=r"`__import__\('os'\)\.system\('x'\)` is a function call and was not made"):
        parse_expression("dict(a=1, b=__import__('os').system('x'))", WHERE)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dict(activation_fn=nn.Relu)", "did you mean 'torch.nn.ReLU'"),
        ("HerReplayBufer", "did you mean 'HerReplayBuffer'"),
        ("subprocess.Popen", "no torch module, optimizer or buffer"),
        ("nn.functional.relu", "is no torch module, optimizer or buffer class"),
        ("np.array", "of numpy and math, only"),
        ("().__class__", "no dotted path"),
        ("nn.ReLU.__subclasses__", "private"),
        ("9**9**9", "beyond bounds"),
        ("1e99 * 1e99", "beyond bounds"),
        ("(10**60)**60", "beyond bounds"),
        ("9" * 400 + " * 10", "beyond bounds"),
        ("(-1)**0.5", "beyond bounds"),
        ("1 / 0", "cannot be computed"),
        ("[0] * 1000000000", "arithmetic is for numbers only"),
        ("'a' + 'b'", "arithmetic is for numbers only"),
        ("1 << 100000", "operator that is not allowed"),
        ("not True", "operator that is not allowed"),
        ("dict(", "never closed"),
        ("[" * 9000, "no readable expression"),
        ("-" * 9000 + "1", "no readable expression|nested too deeply"),
        ("a" * 10001, "too long"),
        ("", "no readable expression"),
        ("{[1]: 2}", "key that is not a plain"),
        ("1j", "neither a number nor a string"),
        ("tuple(3)", "needs a list or tuple"),
        ("list([1], 2)", "not a call of the form"),
    ],
)
def test_says_what_is_not_understood(text, message):
    with pytest.raises(ConfigError, match=message) as caught:
        parse_expression(text, WHERE)
    assert "\n" not in str(caught.value)
