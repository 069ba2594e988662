"""`lit-sb3-ray push-to-hub`: shares a trained agent."""

from __future__ import annotations

from collections.abc import Sequence

from lit_sb3_ray.cli.output import set_up_logging
from lit_sb3_ray.cli.playing import check_seed, choose_model, open_player
from lit_sb3_ray.cli.push_to_hub_parser import build_parser


def run(argv: Sequence[str]) -> int:
    """Carries the command out.

    Args:
        argv: The words after `push-to-hub`.

    Returns:
        0.

    Raises:
        ConfigError: Bad input, no such model, no access to the repository, or the Hub cannot be reached.
    """
    args = build_parser().parse_args(list(argv))
    check_seed(args.seed)
    set_up_logging(args.verbose)
    run_folder, which = choose_model(args)

    from lit_sb3_ray.hub.names import repository
    from lit_sb3_ray.hub.push import Destination, push_run

    organization, _, name = repository(args.organization, args.algo, args.env, args.repo_name).partition("/")
    pushed = push_run(
        run_folder,
        args.algo,
        args.env,
        which,
        Destination(organization, name, args.public, args.commit_message),
        lambda render_mode: open_player(args, run_folder, which, render_mode=render_mode),
        video_length=0 if args.no_render else args.n_timesteps,
        n_eval_episodes=args.eval_episodes,
        seed=args.seed,
        env_kwargs=args.env_kwargs,
        token=args.token,
    )
    if args.verbose > 0:
        print(f"Pushed to {pushed.url} ({'private' if pushed.private else 'public'}); mean reward: {pushed.results.spread}")
    return 0
