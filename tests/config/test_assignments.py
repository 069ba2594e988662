"""Command-line pairs take plain strings, numbers, lists and mappings, and run nothing (case G1)."""

from __future__ import annotations

import pytest

from lit_sb3_ray.config.assignments import parse_assignments
from lit_sb3_ray.errors import ConfigError


@pytest.mark.parametrize(
    ("token", "key", "value"),
    [
        ("render_mode:rgb_array", "render_mode", "rgb_array"),
        ("policy:'MlpPolicy'", "policy", "MlpPolicy"),
        ('policy:"MlpPolicy"', "policy", "MlpPolicy"),
        ("flag:True", "flag", True),
        ("flag:no", "flag", False),
        ("x:None", "x", None),
        ("x:null", "x", None),
        ("x:", "x", None),
        ("lr:1e-3", "lr", 1e-3),
        ("n:-5", "n", -5),
        ("x:[1,2]", "x", [1, 2]),
        ("d:{a: 1, b: [x]}", "d", {"a": 1, "b": ["x"]}),
        ("d:{'a':1,'b':True}", "d", {"a": 1, "b": True}),
        ("train_freq:(1,'episode')", "train_freq", (1, "episode")),
        ("url:http://localhost:80", "url", "http://localhost:80"),
        ("at:12:30", "at", "12:30"),
        ("note:a: b # c", "note", "a: b # c"),
        ("file:@x", "file", "@x"),
        ("learning_rate:lin_1e-3_1e-5", "learning_rate", "lin_1e-3_1e-5"),
        ("policy_kwargs:dict(net_arch=[64, 64])", "policy_kwargs", "dict(net_arch=[64, 64])"),
        ("policy_kwargs:'dict(net_arch=[64])'", "policy_kwargs", "dict(net_arch=[64])"),
    ],
)
def test_reads_values(token, key, value):
    parsed = parse_assignments([token], "--env-kwargs")
    assert parsed == {key: value}
    assert type(parsed[key]) is type(value)


def test_later_pairs_win():
    assert parse_assignments(["a:1", "b:2", "a:3"], "--hyperparams") == {"a": 3, "b": 2}


@pytest.mark.parametrize(
    ("token", "message"),
    [
        ("novalue", "'novalue'"),
        (":1", "':1'"),
        ("d:{a:1}", r"space after the colon: \{a: 1\}.*'\{a:1\}' of 'd'"),
        ("x:[1,", r"'\[1,' of 'x'"),
        ("x:'open", "''open' of 'x'|\"'open\" of 'x'"),
        ("x:(1, f())", "`f\\(\\)` is a function call"),
    ],
)
def test_errors_show_key_value_and_flag(token, message):
    with pytest.raises(ConfigError, match=message) as caught:
        parse_assignments([token], "--env-kwargs")
    assert "--env-kwargs" in str(caught.value)


def test_a_call_on_the_command_line_is_not_made(tmp_path):
    trace = tmp_path / "trace"
    text = f"__import__('os').system('touch {trace}')"
    assert parse_assignments([f"a:{text}"], "--env-kwargs") == {"a": text}
    assert not trace.exists()
