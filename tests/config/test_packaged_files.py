"""Every entry of our own files resolves."""

from __future__ import annotations

import pytest

from lit_sb3_ray.config.algorithms import ALGOS
from lit_sb3_ray.config.files import read_entries
from lit_sb3_ray.config.hyperparams import resolve
from lit_sb3_ray.config.problems import MissingPackageError


@pytest.mark.parametrize("algo", sorted(ALGOS))
def test_every_entry_resolves(algo):
    file = read_entries(None, algo)
    for key, entry in file.entries.items():
        try:
            resolved = resolve(entry, algo, f"{file.label}, entry {key!r}")
        except MissingPackageError as error:
            assert error.package in ("minigrid", "ae")
            continue
        assert resolved.n_timesteps > 0
