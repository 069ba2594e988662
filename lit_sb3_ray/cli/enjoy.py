"""`lit-sb3-ray enjoy`: plays a trained agent and reports its episodes."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lit_sb3_ray.cli.display import has_display
from lit_sb3_ray.cli.enjoy_parser import build_parser
from lit_sb3_ray.cli.output import set_up_logging, spread, with_bar
from lit_sb3_ray.cli.playing import check_seed, open_player
from lit_sb3_ray.cli.pretrained import choose_or_download

if TYPE_CHECKING:
    from lit_sb3_ray.experiment.playback import Episode, Player, Summary


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
    check_seed(args.seed)
    set_up_logging(args.verbose)
    render = not args.no_render and has_display(os.environ, sys.platform)
    player = _open(args, render)
    try:
        return _report(args, player, render)
    finally:
        player.env.close()


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


def _open(args: argparse.Namespace, render: bool) -> Player:
    run_folder, which = choose_or_download(args)
    return open_player(
        args,
        run_folder,
        which,
        render_mode="human" if render else None,
        norm_reward=args.norm_reward,
        monitor_folder=Path(args.reward_log) if args.reward_log else None,
    )


def _report(args: argparse.Namespace, player: Player, render: bool) -> int:
    from lit_sb3_ray.experiment.playback import play, summarize

    steps = play(
        player.model,
        player.env,
        args.n_timesteps,
        deterministic=player.deterministic,
        monitored=player.monitored,
        render=render,
    )
    episodes: list[Episode] = []
    code = 0
    try:
        for ended in with_bar(steps, args.n_timesteps) if args.progress else steps:
            for episode in ended:
                episodes.append(episode)
                if args.verbose > 0:
                    print(episode_line(len(episodes), episode, player.env.num_envs), flush=True)
    except KeyboardInterrupt:
        code = 128 + signal.SIGINT
    if args.verbose > 0:
        print("\n".join(summary_lines(summarize(episodes), args.n_timesteps)))
    return code
