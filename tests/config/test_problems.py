"""Packages that are missing are told with the extra that brings them."""

import importlib.util

import pytest

from lit_sb3_ray.config.problems import MissingPackageError, require_matplotlib, require_package


def test_without_a_package_the_extra_is_named(monkeypatch):
    require_matplotlib()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingPackageError, match=r"^drawing pictures needs the package 'matplotlib'.*lit-sb3-ray\[plots\]"):
        require_matplotlib()
    with pytest.raises(MissingPackageError, match="install the package that provides 'no_such'"):
        require_package("no_such", "this")
