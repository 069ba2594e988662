"""Trained agents that are fetched from the Hub when asked for: those of the folder `rl-trained-agents`, as in rl_zoo3."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from lit_sb3_ray.cli.playing import choose_model
from lit_sb3_ray.errors import ConfigError

if TYPE_CHECKING:
    from lit_sb3_ray.experiment.locate import Which

FOLDER = "rl-trained-agents"
"""Folders with this in their name are filled from the Hub."""
ORGANIZATION = "sb3"
"""Whose agents these are."""


def choose_or_download(args: argparse.Namespace) -> tuple[Path, Which]:
    """Finds what the flags name, as `choose_model` does, and downloads it first where it is missing.

    Args:
        args: The parsed flags.

    Returns:
        The run folder, and which of its models.

    Raises:
        ConfigError: There is no such run, here or there; or it was refused.
    """
    try:
        return choose_model(args)
    except ConfigError as error:
        if FOLDER not in args.folder or _has_run(args):
            raise
        _check_names(args, error)
        _download(args, error)
    return choose_model(args)


def _has_run(args: argparse.Namespace) -> bool:
    """Whether any run of the algorithm in the environment is there: then one that is missing is a mistake in a flag."""
    from lit_sb3_ray.experiment.locate import algo_folder_name, env_folder_name, list_runs

    home = Path(args.folder) / algo_folder_name(args.algo)
    return bool(list_runs(home, args.env)) or (home / f"{env_folder_name(args.env)}.zip").is_file()


def _check_names(args: argparse.Namespace, missing: ConfigError) -> None:
    """Refuses a misspelt algorithm or environment by the nearest name, without asking the Hub for it."""
    from lit_sb3_ray.config.algorithms import resolve_algorithm
    from lit_sb3_ray.envs.families import register_env

    try:
        resolve_algorithm(args.algo)
        register_env(args.env, args.gym_packages)
    except ConfigError as error:
        raise ConfigError(f"{missing}; and the Hub was not asked: {error}") from error


def _download(args: argparse.Namespace, missing: ConfigError) -> None:
    if not isinstance(args.exp_id, int):
        raise missing
    from lit_sb3_ray.hub.download import download_run

    if args.verbose > 0:
        print(f"No run in {args.folder}: downloading it from the Hub ({ORGANIZATION})", flush=True)
    try:
        download_run(Path(args.folder), args.algo, args.env, organization=ORGANIZATION, exp_id=args.exp_id, trust=args.trust)
    except ConfigError as error:
        raise ConfigError(f"{missing}; the Hub was tried, too: {error}") from error
