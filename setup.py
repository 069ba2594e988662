"""Names the packages to install; everything else is said in pyproject.toml."""

from setuptools import find_packages, setup

setup(
    packages=[*find_packages(include=["lit_sb3_ray", "lit_sb3_ray.*"]), "lit_sb3_ray.hyperparams"],
    package_dir={"lit_sb3_ray.hyperparams": "hyperparams"},
)
