"""YAML is read safely, with the numbers people mean, and rl_zoo3's run files without an unsafe loader."""

from __future__ import annotations

from collections import OrderedDict

import pytest
import yaml

from lit_sb3_ray.config.documents import parse_scalar, parse_yaml, read_yaml
from lit_sb3_ray.errors import ConfigError


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
