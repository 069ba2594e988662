"""Entries come from packaged files, YAML, Python files and modules, and stay the reader's own."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import cloudpickle
import pytest

from lit_sb3_ray.config.algorithms import ALGOS
from lit_sb3_ray.config.files import read_entries
from lit_sb3_ray.errors import ConfigError


@pytest.mark.parametrize("algo", sorted(ALGOS))
def test_reads_the_packaged_file(algo):
    file = read_entries(None, algo)
    assert file.label == f"hyperparams/{algo}.yml"
    assert "default" in file.entries


def test_yaml_keeps_anchors_and_reads_numbers_as_meant(tmp_path):
    path = tmp_path / "own.yaml"
    path.write_text("A-v0: &base\n  learning_rate: 1e-3\n  start: 12:30\nB-v0:\n  <<: *base\n  n_timesteps: !!float 1e6\n")
    entries = read_entries(str(path), "ppo").entries
    assert entries["B-v0"] == {"learning_rate": 1e-3, "start": "12:30", "n_timesteps": 1e6}


def test_python_files_and_modules_are_read_and_never_mutated(tmp_path, monkeypatch):
    path = tmp_path / "own_hyperparams_module.py"
    path.write_text("hyperparams = {'A-v0': {'policy': 'MlpPolicy', 'policy_kwargs': {'net_arch': [64]}}}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    for source in (str(path), "own_hyperparams_module"):
        first = read_entries(source, "ppo").entries
        first["A-v0"]["policy_kwargs"]["net_arch"].append(32)
        first["A-v0"].pop("policy")
        assert read_entries(source, "ppo").entries["A-v0"] == {"policy": "MlpPolicy", "policy_kwargs": {"net_arch": [64]}}
    module = importlib.import_module("own_hyperparams_module")
    assert module.hyperparams["A-v0"]["policy_kwargs"] == {"net_arch": [64]}
    del sys.modules["own_hyperparams_module"]


def test_a_python_file_is_read_anew_and_leaves_no_cache(tmp_path):
    path = tmp_path / "own.py"
    for value in (1, 2):
        path.write_text(f"hyperparams = {{'A-v0': {{'n_steps': {value}}}}}\n")
        assert read_entries(str(path), "ppo").entries["A-v0"]["n_steps"] == value
    assert [entry.name for entry in tmp_path.iterdir()] == ["own.py"]


def test_a_python_file_may_define_dataclasses_and_stays_no_module(tmp_path):
    path = tmp_path / "own.py"
    path.write_text(
        "from __future__ import annotations\n"
        "from dataclasses import dataclass\n"
        "@dataclass(frozen=True)\n"
        "class Half:\n"
        "    start: float\n"
        "    def __call__(self, progress):\n"
        "        return self.start * progress / 2\n"
        "hyperparams = {'A-v0': {'learning_rate': Half(0.5)}}\n"
    )
    before = set(sys.modules)
    schedule = read_entries(str(path), "ppo").entries["A-v0"]["learning_rate"]
    assert schedule(1.0) == 0.25
    assert type(schedule).__module__ not in sys.modules
    assert set(sys.modules) == before
    # So it is sent to other processes as it is, which cannot import the file.
    assert b"progress" in cloudpickle.dumps(schedule)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("own.yml", "A-v0:\n  x: [1, }", "not valid YAML.*line 2"),
        ("own.yml", "- 1", "expected entries by environment id"),
        ("own.yml", "", "an empty file"),
        ("own.yml", "A-v0: 3", "under 'A-v0', not int '3'"),
        ("own.yml", "!!python/object/apply:collections.OrderedDict\n- - [a, 1]", "refused YAML content.*OrderedDict.*line 1"),
        ("own.yml", "A-v0: !!python/object/apply:os.system ['touch trace']", "refused YAML content"),
        ("own.py", "hyperparams = {", "not valid Python.*line 1"),
        ("own.py", "hyperparams_ = {}", "defines no variable 'hyperparams'"),
        ("own.py", "import no_such_package", "'no_such_package', which is not installed"),
        ("own.py", "from json import nothing", "cannot be imported: cannot import name 'nothing'"),
    ],
)
def test_names_the_file_and_what_is_wrong_with_it(name, text, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(text)
    with pytest.raises(ConfigError, match=message) as caught:
        read_entries(name, "ppo")
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not Path("trace").exists()


@pytest.mark.parametrize(
    ("source", "algo", "message"),
    [
        ("none.yml", "ppo", "no file 'none.yml'"),
        ("none.py", "ppo", "no file 'none.py'"),
        ("no_such_module", "ppo", "no file and no module 'no_such_module'"),
        ("some/folder", "ppo", "not 'some/folder'"),
        (None, "own", "unknown algorithm 'own'"),
        (None, "own_algorithms:RandomSearch", "no packaged hyperparameters.*--conf-file"),
        (None, "../secret", "unknown algorithm '../secret'"),
    ],
)
def test_missing_sources_are_named(source, algo, message):
    with pytest.raises(ConfigError, match=message):
        read_entries(source, algo)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("raise RuntimeError('first\\nsecond')", "RuntimeError: first second"),
        ("import sys; sys.exit(3)", "SystemExit: 3"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
    ],
)
def test_a_python_config_that_fails_is_one_line(code, reason, tmp_path, monkeypatch):
    (tmp_path / "failing_config.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    for source in (str(tmp_path / "failing_config.py"), "failing_config"):
        with pytest.raises(ConfigError, match=reason) as caught:
            read_entries(source, "ppo")
        assert "failing_config" in str(caught.value)
        assert "\n" not in str(caught.value)
