"""`lit-sb3-ray enjoy`: plays a trained agent and reports its episodes."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lit_sb3_ray.cli.enjoy_parser import build_parser
from lit_sb3_ray.cli.output import set_up_logging, spread
from lit_sb3_ray.config.ranges import MAX_SEED
from lit_sb3_ray.errors import ConfigError

if TYPE_CHECKING:
    from stable_baselines3.common.base_class import BaseAlgorithm
    from stable_baselines3.common.vec_env import VecEnv

    from lit_sb3_ray.experiment.playback import Episode, Summary


def run(argv: Sequence[str]) -> int:
    """Carries the command out.

    Args:
        argv: The words after `enjoy`.

    Returns:
        0, or 130 when Ctrl-C ended it early; what was played until then is reported all the same.

    Raises:
        ConfigError: Bad input, or no such model.
    """
    args = build_parser().parse_args(list(argv))
    if not 0 <= args.seed <= MAX_SEED:
        raise ConfigError(f"--seed {args.seed} is not between 0 and {MAX_SEED}")
    set_up_logging(args.verbose)
    render = not args.no_render and has_display(os.environ, sys.platform)
    model, env = _load(args, render)
    try:
        return _report(args, model, env, render)
    finally:
        env.close()


def has_display(environ: Mapping[str, str], platform: str) -> bool:
    """Tells whether there is a screen to show environments on.

    Args:
        environ: The environment variables.
        platform: As `sys.platform` gives it.

    Returns:
        True on Windows and macOS, and elsewhere when a display (or SDL's stand-in for one) is set.
    """
    if platform in ("win32", "darwin"):
        return True
    return any(environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER"))


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


def episode_line(number: int, episode: Episode, n_envs: int) -> str:
    """Writes one episode.

    Args:
        number: How many episodes have ended, this one included.
        episode: The episode.
        n_envs: How many environments there are; the environment is named when there are several.

    Returns:
        The line.
    """
    place = f" (env {episode.env})" if n_envs > 1 else ""
    success = "" if episode.success is None else f", success: {'yes' if episode.success else 'no'}"
    return f"Episode {number}{place}: reward {episode.reward:.2f}, length {episode.length}{success}"


def summary_lines(summary: Summary | None, n_steps: int) -> list[str]:
    """Writes the summary.

    Args:
        summary: The figures, None when no episode ended.
        n_steps: How many steps were asked for.

    Returns:
        The lines.
    """
    if summary is None:
        return [f"No episode ended within {n_steps} steps"]
    lines = [] if summary.success_rate is None else [f"Success rate: {100 * summary.success_rate:.2f}%"]
    return [
        *lines,
        f"{summary.episodes} Episodes",
        f"Mean reward: {spread(summary.mean_reward, summary.std_reward)}",
        f"Mean episode length: {spread(summary.mean_length, summary.std_length)}",
    ]


def _load(args: argparse.Namespace, render: bool) -> tuple[BaseAlgorithm, VecEnv]:
    from lit_sb3_ray.experiment.locate import find_model, find_run, which_model

    run_folder = find_run(Path(args.folder), args.algo, args.env, args.exp_id)
    which = which_model(
        run_folder,
        load_best=args.load_best,
        load_checkpoint=args.load_checkpoint,
        load_last_checkpoint=args.load_last_checkpoint,
    )
    path = find_model(run_folder, args.env, which)
    if args.verbose > 0:
        print(f"Loading {path}")

    import torch
    from stable_baselines3.common.utils import set_random_seed

    from lit_sb3_ray.experiment.load import load_run

    if args.num_threads > 0:
        torch.set_num_threads(args.num_threads)
    set_random_seed(args.seed)
    return load_run(
        run_folder,
        which,
        algo=args.algo,
        env_id=args.env,
        env_kwargs=args.env_kwargs,
        n_envs=args.n_envs,
        seed=args.seed,
        device=args.device,
        render_mode="human" if render else None,
        norm_reward=args.norm_reward,
        monitor_folder=Path(args.reward_log) if args.reward_log else None,
        gym_packages=args.gym_packages,
    )


def _report(args: argparse.Namespace, model: BaseAlgorithm, env: VecEnv, render: bool) -> int:
    from lit_sb3_ray.envs.families import is_atari, is_minigrid
    from lit_sb3_ray.experiment.playback import play, summarize

    atari = is_atari(args.env)
    deterministic = plays_deterministically(args.deterministic, args.stochastic, atari or is_minigrid(args.env))
    steps = play(model, env, args.n_timesteps, deterministic=deterministic, monitored=atari, render=render)
    episodes: list[Episode] = []
    code = 0
    try:
        for ended in _with_bar(steps, args.n_timesteps) if args.progress else steps:
            for episode in ended:
                episodes.append(episode)
                if args.verbose > 0:
                    print(episode_line(len(episodes), episode, env.num_envs), flush=True)
    except KeyboardInterrupt:
        code = 128 + signal.SIGINT
    if args.verbose > 0:
        print("\n".join(summary_lines(summarize(episodes), args.n_timesteps)))
    return code


def _with_bar(steps: Iterable[list[Episode]], total: int) -> Iterable[list[Episode]]:
    from tqdm import tqdm

    bar: Iterable[list[Episode]] = tqdm(steps, total=total, unit="step", file=sys.stderr)
    return bar
