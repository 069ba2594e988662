"""Every entry of rl_zoo3's own files resolves; her.yml, which has no algorithm, is refused by name."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from lit_sb3_ray.config.algorithms import ALGOS
from lit_sb3_ray.config.files import read_entries
from lit_sb3_ray.config.hyperparams import resolve, select_entry
from lit_sb3_ray.config.problems import MissingPackageError
from lit_sb3_ray.errors import ConfigError

# Finding the peer does not import it, which would patch gymnasium.
PEER = importlib.util.find_spec("rl_zoo3")
ALGORITHMS = sorted(set(ALGOS) - {"ppo_mask"})
OPTIONAL = ("minigrid", "ae")
NUMBER_OF_ENTRIES = 276


def peer_file(name: str) -> str:
    assert PEER is not None and PEER.submodule_search_locations is not None
    return str(Path(PEER.submodule_search_locations[0]) / "hyperparams" / f"{name}.yml")


def wrapper_packages(entry) -> set[str]:
    wrappers = entry.get("env_wrapper") or []
    items = wrappers if isinstance(wrappers, list) else [wrappers]
    return {(next(iter(item)) if isinstance(item, dict) else item).split(".")[0] for item in items}


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_every_entry_resolves_or_names_its_missing_package(algo):
    file = read_entries(peer_file(algo), algo)
    for env_id in file.entries:
        entry, key = select_entry(file, env_id, atari=env_id == "atari")
        absent = {name for name in OPTIONAL if importlib.util.find_spec(name) is None}
        missing = wrapper_packages(entry) & absent
        where = f"{file.label}, entry {key!r}"
        if missing:
            with pytest.raises(MissingPackageError) as caught:
                resolve(entry, algo, where)
            assert caught.value.package in missing
            if "minigrid" in missing:
                assert "lit-sb3-ray[minigrid]" in str(caught.value)
            # The rest of the entry is sound.
            del entry["env_wrapper"]
        resolved = resolve(entry, algo, where)
        assert resolved.n_timesteps == int(entry["n_timesteps"])
        assert resolved.n_envs == entry.get("n_envs", 1)


def test_all_entries_were_read():
    assert sum(len(read_entries(peer_file(algo), algo).entries) for algo in ALGORITHMS) == NUMBER_OF_ENTRIES


@pytest.mark.parametrize("algo", ["sac", "tqc"])
def test_her_yml_is_refused_by_name(algo):
    with pytest.raises(ConfigError, match=r"HER is a replay buffer, not an algorithm.*HerReplayBuffer \(.*her\.yml\)"):
        read_entries(peer_file("her"), algo)
