"""Every name that rl_zoo3's files, wrappers, callbacks and utilities offer is here too, or refused by name with the reason."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
from pathlib import Path

import pytest

from lit_sb3_ray.config.classes import ClassKind, resolve_class
from lit_sb3_ray.config.peer_names import REFUSED
from lit_sb3_ray.errors import ConfigError

# Found without being imported, which would change gymnasium.
PEER = Path(importlib.util.find_spec("rl_zoo3").origin).parent
KINDS = {"wrappers": ClassKind.ENV_WRAPPER, "callbacks": ClassKind.CALLBACK}
FROM_PYTHON = {
    "ALGOS": "lit_sb3_ray.ALGOS",
    "SimpleLinearSchedule": "lit_sb3_ray.config.schedules.LinearSchedule",
    "StoreDict": "lit_sb3_ray.config.assignments.parse_assignments",
    "create_test_env": "lit_sb3_ray.load_run",
    "flatten_dict_observations": "gymnasium.wrappers.FlattenObservation",
    "get_callback_list": "lit_sb3_ray.config.components.resolve_callbacks",
    "get_class_by_name": "lit_sb3_ray.config.classes.resolve_class",
    "get_latest_run_id": "lit_sb3_ray.experiment.locate.list_runs",
    "get_model_path": "lit_sb3_ray.experiment.locate.find_model",
    "get_saved_hyperparams": "lit_sb3_ray.experiment.run_folder.read_hyperparameters",
    "get_trained_models": "lit_sb3_ray.benchmarking.runs.find_runs",
    "get_wrapper_class": "lit_sb3_ray.config.components.resolve_components",
    "linear_schedule": "lit_sb3_ray.config.schedules.LinearSchedule",
}
"""What does here, for Python code, what the utilities do there."""
NOT_HERE = {"get_hf_trained_models": "nothing is downloaded unasked: load-from-hub brings one model at a time"}


def defined(module):
    """The names that a module of the peer defines, without its imports."""
    names = set()
    for node in ast.parse((PEER / f"{module}.py").read_text()).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign | ast.Assign):
            targets = [node.target] if isinstance(node, ast.AnnAssign) else node.targets
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return sorted(names)


def offered(module):
    """What a file may name of a module: what it defines, and what it imports for others' sake."""
    again = {"wrappers": ["TimeFeatureWrapper"], "callbacks": []}
    return [*defined(module), *again[module]]


NAMES = [(module, name) for module in KINDS for name in offered(module)]


def test_the_peer_offers_what_is_looked_for():
    assert {"FrameSkip", "HistoryWrapperObsDict", "MaskVelocityWrapper"} <= set(offered("wrappers"))
    assert offered("callbacks") == [
        "ParallelTrainCallback",
        "RawStatisticsCallback",
        "SaveVecNormalizeCallback",
        "TrialEvalCallback",
    ]


@pytest.mark.parametrize(("module", "name"), NAMES, ids=lambda value: value)
@pytest.mark.parametrize("package", ["rl_zoo3", "utils"])
def test_a_name_of_the_peer_is_ours_or_refused_with_the_reason(package, module, name):
    path = f"{package}.{module}.{name}"
    if f"rl_zoo3.{module}.{name}" in REFUSED:
        if package == "rl_zoo3":
            with pytest.raises(ConfigError, match=re.escape(REFUSED[path])):
                resolve_class(path, KINDS[module], "own.yml")
        return
    found = resolve_class(path, KINDS[module], "own.yml")
    assert found.__name__ == name
    assert not found.__module__.startswith("rl_zoo3")


def test_only_what_a_file_cannot_build_is_refused_of_what_there_is():
    assert {f"rl_zoo3.{module}.{name}" for module, name in NAMES} & set(REFUSED) == {"rl_zoo3.callbacks.TrialEvalCallback"}


@pytest.mark.parametrize("file", sorted((PEER / "hyperparams").glob("*.yml")), ids=lambda path: path.stem)
def test_the_names_in_the_peers_files(file):
    """Also those that are commented out, which users try."""
    for path in sorted(set(re.findall(r"rl_zoo3\.\w+\.\w+", file.read_text()))):
        kind = KINDS[path.split(".")[1]]
        if path in REFUSED:
            with pytest.raises(ConfigError, match=path):
                resolve_class(path, kind, file.name)
        else:
            assert resolve_class(path, kind, file.name).__name__ == path.split(".")[2]


@pytest.mark.parametrize("name", defined("utils"))
def test_a_utility_of_the_peer_has_a_counterpart_in_python(name):
    if name in NOT_HERE:
        return
    module, _, attribute = FROM_PYTHON[name].rpartition(".")
    assert getattr(importlib.import_module(module), attribute) is not None


@pytest.mark.parametrize("name", [name for name in defined("utils") if name != "flatten_dict_observations"])
@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_a_file_that_names_a_utility_is_told_that_it_has_none(name, kind):
    with pytest.raises(ConfigError, match=rf"'rl_zoo3.utils.{name}' has no counterpart"):
        resolve_class(f"rl_zoo3.utils.{name}", kind, "own.yml")


def test_the_function_that_files_name_as_a_wrapper_is_a_class():
    found = resolve_class("rl_zoo3.utils.flatten_dict_observations", ClassKind.ENV_WRAPPER, "own.yml")
    assert found.__name__ == "FlattenObservation"


def test_the_linear_schedule_of_the_peer_is_told_how_it_is_written_here():
    with pytest.raises(ConfigError, match=r"written as lin_<start>, such as lin_0.001 \(own.yml\)"):
        resolve_class("rl_zoo3.utils.linear_schedule", ClassKind.VALUE, "own.yml")
