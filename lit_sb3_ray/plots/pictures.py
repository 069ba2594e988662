"""Pictures as PNG, SVG or PDF files, drawn by matplotlib (the extra `plots`) without a display and without pyplot."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lit_sb3_ray.config.problems import require_matplotlib
from lit_sb3_ray.errors import ConfigError, unknown
from lit_sb3_ray.experiment.run_folder import check_writable, replace_file
from lit_sb3_ray.lit.refusals import refusing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

logger = logging.getLogger(__name__)

FORMATS = ("png", "svg", "pdf")

LEGEND_PLACES = (
    *("best", "upper right", "upper left", "lower left", "lower right", "right"),
    *("center left", "center right", "lower center", "upper center", "center"),
)

_DPI = 120
# Inches in which there is room for anything at all.
_LEAST = 0.5
# Of a larger picture matplotlib would fill gigabytes, if anything.
_MAX_PIXELS = 10**8
# A legend above this many names is written smaller.
_MANY_NAMES = 8


@dataclass(frozen=True)
class Style:
    """How pictures look.

    Attributes:
        figsize: Width and height in inches.
        fontsize: Size of titles and labels in points; ticks and legends are a little smaller.
        legend_loc: Where legends are.
        latex: Whether LaTeX sets the text.
    """

    figsize: tuple[float, float] = (6.4, 4.8)
    fontsize: float = 14
    legend_loc: str = "best"
    latex: bool = False

    def check(self) -> None:
        """Checks that pictures of this style can be drawn here.

        Raises:
            MissingPackageError: matplotlib is not installed.
            ConfigError: There is no such place for a legend, no LaTeX, or hardly any picture.
        """
        require_matplotlib()
        if self.legend_loc not in LEGEND_PLACES:
            raise unknown("place of a legend", self.legend_loc, LEGEND_PLACES, "--legend-loc")
        if min(self.figsize) < _LEAST:
            raise ConfigError(
                f"--figsize {self.figsize[0]:g} {self.figsize[1]:g}: {_LEAST:g} inches at least, in both directions"
            )
        absent = [program for program in ("latex", "dvipng") if shutil.which(program) is None] if self.latex else []
        if absent:
            raise ConfigError(f"--latex needs a LaTeX installation: there is no program {' and no program '.join(absent)}")


@dataclass(frozen=True)
class Output:
    """Where files go: `<stem><suffix>`, and `<stem>_<what><suffix>` for further ones.

    Attributes:
        stem: Their common path without suffix.
        format: The format of pictures.
        flag: The flag that named it.
    """

    stem: Path
    format: str
    flag: str

    @property
    def picture(self) -> Path:
        """The main picture."""
        return self.file(f".{self.format}")

    def further(self, what: str) -> Path:
        """A further picture; slashes and spaces of its name become hyphens."""
        return self.file(f"_{what.replace('/', '-').replace(' ', '-')}.{self.format}")

    def file(self, ending: str) -> Path:
        """A file of this stem."""
        return self.stem.with_name(self.stem.name + ending)

    def write(self, ending: str, write: Callable[[Path], object]) -> Path:
        """Writes a file of this stem that is no picture, whole or not at all.

        Args:
            ending: What follows the stem.
            write: Writes to the path it is given.

        Raises:
            ConfigError: It cannot be written.
        """
        path = self.file(ending)
        with refusing(f"{self.flag} {path} cannot be written"):
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, write)
        return path

    def write_text(self, ending: str, text: str) -> Path:
        """Writes a text file of this stem; see `write`."""
        return self.write(ending, lambda path: path.write_text(text, encoding="utf-8"))


def output_files(
    name: str, flag: str, *, format: str | None = None, default: str = "png", other: tuple[str, ...] = ()
) -> Output:
    """Settles where pictures go and in which format; nothing is made yet.

    Args:
        name: What was asked for, with or without a suffix.
        flag: The flag that asked for it.
        format: The format asked for by another flag; it goes before the suffix.
        default: The format where neither names one.
        other: Suffixes of other files that the name may have, such as `.npz`.

    Raises:
        ConfigError: No such format, or the folder cannot be written.
    """
    path = Path(name)
    if path.name in ("", "..") or name.endswith(("/", os.sep)):
        raise ConfigError(f"{flag} {name!r} is a folder: name a file, such as {path / 'results.png'}")
    suffix = path.suffix.lower().removeprefix(".")
    if suffix in FORMATS or path.suffix in other:
        path = path.with_suffix("")
    wanted = (format or (suffix if suffix in FORMATS else default)).lower()
    if wanted not in FORMATS:
        raise unknown("format", wanted, FORMATS, "--format")
    check_writable(path.parent, flag)
    return Output(path, wanted, flag)


def write_picture(path: Path, style: Style, draw: Callable[[Figure], None]) -> Path:
    """Draws a picture into a file, whole or not at all.

    Args:
        path: The file; its suffix is the format.
        style: How it looks.
        draw: Fills the figure it is given.

    Returns:
        The file.

    Raises:
        ConfigError: It cannot be drawn, such as for bad LaTeX or a size in pixels, or not be written.
    """
    import matplotlib
    from matplotlib.figure import Figure

    width, height = style.figsize
    if path.suffix == ".png" and width * height * _DPI**2 > _MAX_PIXELS:
        raise ConfigError(
            f"{path} cannot be drawn: {width:g} x {height:g} inches would be {width * _DPI:,.0f} x {height * _DPI:,.0f} "
            "pixels; give a smaller --figsize, or --format svg or pdf"
        )
    with refusing(f"{path} cannot be drawn"), matplotlib.rc_context(_settings(style)):
        if path.is_dir():
            raise ConfigError(f"{path} cannot be drawn: it is a folder")
        picture = Figure(figsize=style.figsize, layout="constrained")
        draw(picture)
        form = path.suffix[1:]
        path.parent.mkdir(parents=True, exist_ok=True)
        undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(form)
        replace_file(path, lambda partial: picture.savefig(partial, format=form, dpi=_DPI, metadata=undated))
    return path


def add_legend(axes: Any, style: Style) -> None:
    """Adds a legend, if anything has a name."""
    names = axes.get_legend_handles_labels()[1]
    if names:
        size = style.fontsize - (2 if len(names) <= _MANY_NAMES else 5)
        axes.legend(loc=style.legend_loc, fontsize=max(size, 4), ncols=1 if len(names) <= _MANY_NAMES else 2)


def _settings(style: Style) -> Any:
    small = max(style.fontsize - 1, 4)
    return {
        "text.usetex": style.latex,
        "font.size": style.fontsize,
        "axes.titlesize": style.fontsize,
        "axes.labelsize": style.fontsize,
        "xtick.labelsize": small,
        "ytick.labelsize": small,
        "axes.grid": True,
        "axes.axisbelow": True,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "grid.alpha": 0.3,
        # Text stays text in files for papers, and the same picture is the same file.
        "pdf.fonttype": 42,
        "svg.hashsalt": "lit_sb3_ray",
    }
