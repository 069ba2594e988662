"""`lit-sb3-ray load-from-hub`: downloads a trained agent, and makes a run folder of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lit_sb3_ray.cli.flags import FlagParser
from lit_sb3_ray.cli.output import set_up_logging
from lit_sb3_ray.cli.stopping import terminable


def build_parser() -> FlagParser:
    """Builds the parser of `load-from-hub`: the 8 flags of rl_zoo3, and three more."""
    parser = FlagParser(
        prog="lit-sb3-ray load-from-hub",
        description="Download a trained agent that this package or rl_zoo3 has pushed to the Hugging Face Hub, and make a run "
        "folder of it. Nothing that is downloaded is run: models and statistics are read with a list of classes, and refused "
        "where they hold anything else.",
    )
    which = parser.add_argument_group("which agent")
    which.add_argument("--algo", required=True, metavar="NAME", help="algorithm it was trained with")
    which.add_argument("--env", required=True, metavar="ID", help="environment id")
    which.add_argument(
        "-orga", "--organization", default="sb3", metavar="NAME", help="whose repository it is (default: %(default)s)"
    )
    which.add_argument("-name", "--repo-name", metavar="NAME", help="the repository's name (default: <algo>-<environment>)")
    which.add_argument("--revision", metavar="REV", help="a commit, branch or tag (default: the newest)")
    which.add_argument(
        "--token", metavar="TOKEN", help="access token for what is not public (default: HF_TOKEN, or that of `hf auth login`)"
    )
    where = parser.add_argument_group("where it goes")
    where.add_argument("-f", "--folder", required=True, metavar="DIR", help="log folder")
    where.add_argument(
        "--exp-id",
        type=int,
        default=0,
        metavar="ID",
        help="number of the run; 0 the next free (default), -1 no run folder",
    )
    where.add_argument("--force", action="store_true", help="replace a run that is there already")
    parser.add_argument(
        "--trust",
        action="store_true",
        help="take the files as they are, now and whenever they are opened: that runs whatever code their maker put into them",
    )
    parser.add_argument("--verbose", type=int, default=1, metavar="LEVEL", help="0 nothing, 1 where the run is (default)")
    return parser


def run(argv: Sequence[str]) -> int:
    """Carries the command out.

    Args:
        argv: The words after `load-from-hub`.

    Returns:
        0.

    Raises:
        ConfigError: Bad input; no such repository or run; its files were refused; or the run folder is there already.
    """
    args = build_parser().parse_args(list(argv))
    set_up_logging(args.verbose)

    from lit_sb3_ray.hub.download import download_run
    from lit_sb3_ray.hub.names import repository

    repo_id = repository(args.organization, args.algo, args.env, args.repo_name)
    if args.verbose > 0:
        print(f"Downloading {repo_id}", flush=True)
    with terminable():
        made = download_run(
            Path(args.folder),
            args.algo,
            args.env,
            organization=args.organization,
            repo_name=args.repo_name,
            exp_id=args.exp_id,
            force=args.force,
            trust=args.trust,
            token=args.token,
            revision=args.revision,
        )
    if args.verbose > 0:
        print(f"Saved to {made.path}")
    return 0
