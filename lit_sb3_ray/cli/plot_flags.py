"""Flags that the plotting commands share, and what they are made into."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from lit_sb3_ray.cli.flags import FlagGroup, positive_number

if TYPE_CHECKING:
    from lit_sb3_ray.plots.pictures import Output, Style
    from lit_sb3_ray.plots.tables import Table, TableFormat

TABLE_FORMATS = ("markdown", "latex", "csv")


def add_look(group: FlagGroup) -> None:
    """Adds `--figsize` and `--fontsize`."""
    group.add_argument(
        "--figsize",
        nargs=2,
        type=positive_number,
        default=[6.4, 4.8],
        metavar=("WIDTH", "HEIGHT"),
        help="size of pictures in inches (default: 6.4 4.8)",
    )
    group.add_argument(
        "--fontsize", type=positive_number, default=14, metavar="POINTS", help="size of the text (default: %(default)s)"
    )


def add_format(group: FlagGroup, default: str) -> None:
    """Adds `--format`, and `--table` for what is printed."""
    group.add_argument(
        "--format", metavar="NAME", help=f"format of pictures: png, svg or pdf (default: as -o ends, else {default})"
    )
    group.add_argument(
        "--table",
        choices=TABLE_FORMATS,
        default="markdown",
        help="how tables are printed (default: %(default)s); -o writes all three",
    )


def style_of(args: argparse.Namespace, *, legend_loc: str = "best", latex: bool = False) -> Style:
    """Makes the style, and checks that it can be drawn.

    Raises:
        ConfigError: A package or a program is missing, or a value is wrong.
    """
    from lit_sb3_ray.plots.pictures import Style

    width, height = getattr(args, "figsize", (6.4, 4.8))
    style = Style((width, height), getattr(args, "fontsize", 14), legend_loc, latex)
    style.check()
    return style


def print_table(table: Table, form: TableFormat) -> None:
    """Prints a table, and an empty line after it."""
    print(table.render(form))


def write_tables(table: Table, output: Output, what: str = "") -> None:
    """Writes a table in all its forms and tells where.

    Args:
        table: The table.
        output: Where files go.
        what: What is added to the stem, such as `_metrics`.

    Raises:
        ConfigError: A file cannot be written.
    """
    from lit_sb3_ray.plots.tables import SUFFIXES

    for form, suffix in SUFFIXES.items():
        print(output.write_text(f"{what}{suffix}", table.render(form)))
