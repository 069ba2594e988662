"""The packaged figures are the published ones, entry by entry; every further entry takes over a published one."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

HYPERPARAMS = Path(__file__).resolve().parents[2] / "hyperparams"
PUBLISHED = json.loads(Path(__file__).with_name("published_hyperparameters.json").read_text(encoding="utf-8"))["algorithms"]

# HER is a replay buffer class, and the published her.yml names no algorithm: it has no file here.
ALGORITHMS = sorted(set(PUBLISHED) - {"her"})

# Every place where an entry of ours differs on purpose: (algorithm, entry, key) -> our value.
DEVIATIONS: dict[tuple[str, str, str], Any] = {
    # RecurrentPPO does not know MlpPolicy.
    ("ppo_lstm", "default", "policy"): "MlpLstmPolicy",
    # The module gymnasium.wrappers.time_limit went away with gymnasium 1.0.
    ("sac", "donkey-generated-track-v0", "env_wrapper"): [
        {"gymnasium.wrappers.TimeLimit": {"max_episode_steps": 500}},
        {"lit_sb3_ray.envs.wrappers.HistoryWrapper": {"horizon": 5}},
    ],
}

# Entries under a current id: pattern of our id -> published ids whose figures it has, the first that exists counting.
CURRENT_IDS = {
    r"((?:Inverted(?:Double)?Pendulum|HumanoidStandup|Reacher|HalfCheetah|Hopper|Walker2d|Ant|Swimmer|Humanoid)-)v[45]": (
        r"\1v4",
        r"\1v2",
    ),
    r"(LunarLander(?:Continuous)?NoVel-)v3": (r"\1v2",),
    r"(CarRacing-)v3": (r"\1v0",),
    r"(Fetch(?:Reach|Push|Slide|PickAndPlace)-)v4": (r"\1v1",),
    r"(Panda(?:Reach|Push|Slide|PickAndPlace|Stack)-)v3": (r"\1v1",),
    r"(MiniGrid-MultiRoom-N4-S5-)v1": (r"\1v0",),
}


def ours(algo: str) -> dict[str, dict[str, Any]]:
    return yaml.safe_load((HYPERPARAMS / f"{algo}.yml").read_text(encoding="utf-8"))


def literal(node: ast.expr) -> Any:
    """The value of an expression as plain data; names stay text, and dict(a=1) equals {'a': 1}."""
    match node:
        case ast.Call(func=ast.Name(id="dict"), args=[]):
            return {keyword.arg: literal(keyword.value) for keyword in node.keywords}
        case ast.Dict():
            return {literal(key): literal(value) for key, value in zip(node.keys, node.values, strict=True) if key is not None}
        case ast.List():
            return [literal(item) for item in node.elts]
        case ast.Name() | ast.Attribute():
            return ast.unparse(node)
    return ast.literal_eval(node)


def plain(key: str, value: Any) -> Any:
    """One form for what the files may spell differently: spaces in expressions, one wrapper or a list, old wrapper names."""
    if isinstance(value, str) and value.strip().startswith(("dict(", "{")):
        return literal(ast.parse(value.strip(), mode="eval").body)
    if key == "env_wrapper":
        listed = value if isinstance(value, list) else [value]
        return json.loads(json.dumps(listed).replace("rl_zoo3.wrappers.", "lit_sb3_ray.envs.wrappers."))
    return value


def figures(entry: dict[str, Any]) -> dict[str, Any]:
    return {key: plain(key, value) for key, value in entry.items()}


def typed(value: Any) -> Any:
    """Numbers compare by value, but a flag is no number: True must not pass for 1."""
    if isinstance(value, dict):
        return {key: typed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [typed(item) for item in value]
    return ("flag", value) if isinstance(value, bool) else value


def predecessor(env_id: str, published: dict[str, Any]) -> str | None:
    for pattern, olds in CURRENT_IDS.items():
        if re.fullmatch(pattern, env_id):
            found = [old for old in (re.sub(pattern, template, env_id) for template in olds) if old in published]
            return found[0] if found else None
    return None


def test_one_file_for_each_algorithm_and_none_for_her():
    assert {path.stem for path in HYPERPARAMS.glob("*.yml")} == {*ALGORITHMS, "ppo_mask"}


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_published_entries_have_their_figures(algo):
    entries = ours(algo)
    for env_id, published in PUBLISHED[algo].items():
        expected = figures(published)
        expected |= {key: value for (name, entry, key), value in DEVIATIONS.items() if (name, entry) == (algo, env_id)}
        assert typed(figures(entries[env_id])) == typed(expected), env_id


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_further_entries_take_over_a_published_one(algo):
    entries, published = ours(algo), PUBLISHED[algo]
    for env_id in set(entries) - set(published):
        old = predecessor(env_id, published)
        assert old is not None, f"{env_id} has no published predecessor"
        assert entries[env_id] == entries[old], f"{env_id} differs from {old}"


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_every_mujoco_entry_has_a_v5(algo):
    entries = ours(algo)
    mujoco = {env_id for env_id in PUBLISHED[algo] if re.fullmatch(next(iter(CURRENT_IDS)), re.sub(r"-v2$", "-v4", env_id))}
    assert {re.sub(r"-v\d$", "-v5", env_id) for env_id in mujoco} <= set(entries)


@pytest.mark.parametrize(("algo", "env_id", "key"), DEVIATIONS)
def test_deviations_are_real(algo, env_id, key):
    assert plain(key, PUBLISHED[algo][env_id][key]) != DEVIATIONS[algo, env_id, key]


def test_ppo_mask_is_ppo_without_continuous_envs():
    masked, ppo = ours("ppo_mask"), ours("ppo")
    for env_id, entry in masked.items():
        assert entry == ppo[env_id], env_id
        assert "use_sde" not in entry
