"""How commands that look at a study are told which one."""

from __future__ import annotations

from lit_sb3_ray.cli.flags import FlagParser


def add_named_study(parser: FlagParser) -> None:
    """Adds `STUDY`, `--storage` and `--study-name`.

    Args:
        parser: The command's parser; the destinations are `study`, `storage` and `study_name`.
    """
    parser.add_argument(
        "study",
        nargs="?",
        metavar="STUDY",
        help="the study's folder, or a storage (a journal file that ends in .log, or an Optuna URL)",
    )
    parser.add_argument("--storage", metavar="URL", help="the study's storage, instead of STUDY")
    parser.add_argument("--study-name", metavar="NAME", help="its name, where the storage has several")
