"""What the commands that play a trained agent share: finding it, opening it, and how it chooses its actions."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from lit_sb3_ray.cli.loading import load_to_stay
from lit_sb3_ray.config.ranges import MAX_SEED, MAX_THREADS
from lit_sb3_ray.errors import ConfigError

if TYPE_CHECKING:
    from lit_sb3_ray.experiment.locate import Which
    from lit_sb3_ray.experiment.playback import Player


def check_seed(seed: int) -> None:
    """Checks `--seed`.

    Args:
        seed: Its value.

    Raises:
        ConfigError: No generator takes it.
    """
    if not 0 <= seed <= MAX_SEED:
        raise ConfigError(f"--seed {seed} is not between 0 and {MAX_SEED}")


def plays_deterministically(deterministic: bool, stochastic: bool, stochastic_family: bool) -> bool:
    """Settles how actions are chosen.

    Args:
        deterministic: Whether `--deterministic` was given.
        stochastic: Whether `--stochastic` was given; it goes over `--deterministic`.
        stochastic_family: Whether the environment is one of those played stochastically by default (Atari, MiniGrid).

    Returns:
        True to take the likeliest action.
    """
    return not stochastic and (deterministic or not stochastic_family)


def choose_model(args: argparse.Namespace) -> tuple[Path, Which]:
    """Finds what the flags of `play_flags.add_run` and `add_choice` name.

    Args:
        args: The parsed flags.

    Returns:
        The run folder, and which of its models.

    Raises:
        ConfigError: There is no such run, or no model on the way where the last one is asked for.
    """
    from lit_sb3_ray.experiment.locate import find_run, which_model

    run_folder = find_run(Path(args.folder), args.algo, args.env, args.exp_id)
    which = which_model(
        run_folder,
        load_best=args.load_best,
        load_checkpoint=args.load_checkpoint,
        load_last_checkpoint=args.load_last_checkpoint,
    )
    return run_folder, which


def open_player(
    args: argparse.Namespace,
    run_folder: Path,
    which: Which,
    *,
    render_mode: str | None,
    norm_reward: bool = False,
    monitor_folder: Path | None = None,
) -> Player:
    """Opens one model of a run as the flags of `play_flags` say, and seeds everything for it.

    Args:
        args: The parsed flags.
        run_folder: The run folder.
        which: Which of its models.
        render_mode: gymnasium's render mode; None to render nothing.
        norm_reward: Whether rewards are normalised, where observations are.
        monitor_folder: Folder for monitor files; None for none.

    Returns:
        The agent in its environments, which the caller closes.

    Raises:
        ConfigError: There is no such model, or it or its environments cannot be opened.
    """
    from lit_sb3_ray.experiment.locate import find_model

    path = find_model(run_folder, args.env, which)
    if args.verbose > 0:
        print(f"Loading {path}", flush=True)

    load_to_stay("lit_sb3_ray.experiment.load")
    import torch
    from stable_baselines3.common.utils import set_random_seed

    from lit_sb3_ray.envs.families import is_atari, is_minigrid
    from lit_sb3_ray.experiment.load import load_run
    from lit_sb3_ray.experiment.playback import Player

    if args.num_threads > MAX_THREADS:
        raise ConfigError(f"--num-threads {args.num_threads}: {MAX_THREADS} at most")
    if args.num_threads > 0:
        torch.set_num_threads(args.num_threads)
    set_random_seed(args.seed)
    model, env = load_run(
        run_folder,
        which,
        algo=args.algo,
        env_id=args.env,
        env_kwargs=args.env_kwargs,
        n_envs=args.n_envs,
        seed=args.seed,
        device=args.device,
        render_mode=render_mode,
        norm_reward=norm_reward,
        monitor_folder=monitor_folder,
        gym_packages=args.gym_packages,
        trusted=True if args.trust else None,
    )
    atari = is_atari(args.env)
    deterministic = plays_deterministically(args.deterministic, args.stochastic, atari or is_minigrid(args.env))
    return Player(model, env, deterministic=deterministic, monitored=atari)
