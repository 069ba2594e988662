"""YAML is read safely, with the numbers people mean, and rl_zoo3's run files without an unsafe loader."""

from __future__ import annotations

from collections import OrderedDict

import pytest
import yaml

from lit_sb3_ray.config.documents import parse_scalar, parse_yaml, read_yaml
from lit_sb3_ray.errors import ConfigError

# Ten values, each of which is ten times the one before.
LAUGHS = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 10))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1e-3", 1e-3),
        ("-1.5E+2", -150.0),
        ("1_000", 1000),
        (".inf", float("inf")),
        ("0x10", 16),
        ("12:30", "12:30"),
        ("2024-01-31", "2024-01-31"),
        ("1.2.3", "1.2.3"),
        ("yes", True),
        ("~", None),
        ("rgb_array", "rgb_array"),
    ],
)
def test_scalars(text, expected):
    assert parse_yaml(text, "x") == expected
    assert parse_scalar(text) == expected


def test_run_files_of_the_peer_are_read_safely(tmp_path):
    path = tmp_path / "config.yml"
    path.write_text(yaml.dump(OrderedDict(gamma=0.99, policy_kwargs="dict(net_arch=[64])", freq=(1, "episode"))))
    expected = {"gamma": 0.99, "policy_kwargs": "dict(net_arch=[64])", "freq": (1, "episode")}
    assert read_yaml(path, run_file=True) == expected
    with pytest.raises(ConfigError, match="OrderedDict"):
        read_yaml(path)


def test_other_tags_are_refused_in_run_files_too(tmp_path):
    trace = tmp_path / "trace"
    with pytest.raises(ConfigError, match="refused YAML content"):
        parse_yaml(f"!!python/object/apply:os.system ['touch {trace}']", "x.yml", run_file=True)
    assert not trace.exists()


def test_unreadable_files_are_named(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read"):
        read_yaml(tmp_path)
    (tmp_path / "binary.yml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="no text file"):
        read_yaml(tmp_path / "binary.yml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: 2\na: 3\n", "the key 'a' stands twice in one mapping, line 3 \\(x.yml"),
        ("a:\n  - {b: 1, b: 2}\n", "the key 'b' stands twice in one mapping, line 2"),
        ("a: &x [1, *x]\n", "an alias stands inside of what it names, line 1"),
        (LAUGHS, "with what its aliases name it has more than 1000000 values"),
        ("a: &x\n  b: *x\n", "an alias stands inside of what it names"),
    ],
)
def test_keys_given_twice_and_aliases_of_themselves_are_refused(text, message):
    with pytest.raises(ConfigError, match=message) as caught:
        parse_yaml(text, "x.yml")
    assert "\n" not in str(caught.value)


def test_merge_keys_override_silently_wherever_they_stand():
    text = "a: &a {one: 1, two: 1}\nb:\n  c: &c {<<: *a, one: 2}\nd: {<<: *c, two: 3}\ne: {<<: [*c, *a], two: 4}\n"
    read = parse_yaml(text, "x.yml")
    assert (read["b"]["c"], read["d"]) == ({"one": 2, "two": 1}, {"one": 2, "two": 3})
    assert read["e"]["two"] == 4
