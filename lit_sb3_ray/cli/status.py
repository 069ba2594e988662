"""`lit-sb3-ray status`: where a study stands."""

from __future__ import annotations

from collections.abc import Sequence

from lit_sb3_ray.cli.flags import FlagParser
from lit_sb3_ray.cli.named_study import add_named_study
from lit_sb3_ray.cli.output import set_up_logging


def build_parser() -> FlagParser:
    """Builds the parser of `status`."""
    parser = FlagParser(
        prog="lit-sb3-ray status",
        description="Tell where a study stands, running or not: trials by state, who works on it, the best so far, failures.",
    )
    add_named_study(parser)
    return parser


def run(argv: Sequence[str]) -> int:
    """Carries the command out.

    Args:
        argv: The words after `status`.

    Returns:
        0.

    Raises:
        ConfigError: Bad input, or no such study.
    """
    args = build_parser().parse_args(list(argv))
    set_up_logging(0)

    from lit_sb3_ray.tuning.locate import find_study
    from lit_sb3_ray.tuning.reports.standing import standing_of, told

    print("\n".join(told(standing_of(find_study(args.study, args.storage, args.study_name)))))
    return 0
