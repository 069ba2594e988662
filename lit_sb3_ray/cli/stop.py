"""`lit-sb3-ray stop`: ends a running study in good order."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from lit_sb3_ray.cli.flags import FlagParser, positive_number
from lit_sb3_ray.cli.named_study import add_named_study
from lit_sb3_ray.cli.output import set_up_logging

LOOK_EVERY_S = 0.5


def build_parser() -> FlagParser:
    """Builds the parser of `stop`."""
    parser = FlagParser(
        prog="lit-sb3-ray stop",
        description="End a running study in good order: what it has found is reported, and `tune --resume` goes on with it.",
    )
    add_named_study(parser)
    parser.add_argument(
        "--timeout",
        type=positive_number,
        default=120.0,
        metavar="S",
        help="seconds to wait until it has ended (default: %(default)g)",
    )
    return parser


def run(argv: Sequence[str]) -> int:
    """Carries the command out.

    Args:
        argv: The words after `stop`.

    Returns:
        0 when nobody works on the study any more; 1 when somebody still does after the timeout.

    Raises:
        ConfigError: Bad input, or no such study.
    """
    args = build_parser().parse_args(list(argv))
    set_up_logging(0)

    from lit_sb3_ray.tuning.drivers import drivers_of, request_stop
    from lit_sb3_ray.tuning.locate import find_study

    study = find_study(args.study, args.storage, args.study_name)
    asked = request_stop(study)
    if not asked:
        print("nobody works on it")
        return 0
    deadline = time.monotonic() + args.timeout
    waiting = asked
    while waiting and time.monotonic() < deadline:
        time.sleep(LOOK_EVERY_S)
        living = {driver.id for driver in drivers_of(study) if driver.alive}
        waiting = [driver for driver in waiting if driver.id in living]
    for driver in waiting:
        print(f"still at work: {driver.told()}", file=sys.stderr)
    if not waiting:
        print(f"stopped: {', '.join(driver.told() for driver in asked)}")
    return 1 if waiting else 0
