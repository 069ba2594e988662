"""What the commands' parsers share: one-line errors, `key:value` flags that merge, and knowing which flags were given."""

from __future__ import annotations

import argparse
import difflib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

from lit_sb3_ray.config.assignments import parse_assignments
from lit_sb3_ray.errors import ConfigError

TRUE_WORDS = frozenset({"true", "yes", "on", "1"})
FALSE_WORDS = frozenset({"false", "no", "off", "0"})

_NOT_GIVEN = object()


class FlagGroup(Protocol):
    """What flags are added to: a parser, or a group of its flags."""

    def add_argument(self, *names: str, **settings: Any) -> argparse.Action:
        """Adds a flag; see `argparse`."""


class FlagParser(argparse.ArgumentParser):
    """An `ArgumentParser` that reports bad input as `ConfigError`, so that every command fails in the same one line."""

    def error(self, message: str) -> NoReturn:
        """Raises what argparse found.

        Args:
            message: argparse's description of the fault.

        Raises:
            ConfigError: Always; a misspelt flag is told with the nearest one there is.
        """
        raise ConfigError(message + self._nearest_flag(message))

    def _nearest_flag(self, message: str) -> str:
        match = re.match(r"unrecognized arguments: (-[^\s=]+)", message)
        if match is None:
            return f" (see `{self.prog} --help`)"
        known = re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", self.format_help())
        near = difflib.get_close_matches(match[1], known, n=1, cutoff=0.5)
        return f": did you mean {near[0]!r}?" if near else f" (see `{self.prog} --help`)"


class AssignmentsAction(argparse.Action):
    """Collects `key:value` words in a dict; a flag given again adds to it, a key given again replaces its value."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        """Merges the words of one use of the flag over those of earlier uses.

        Args:
            parser: The parser at work.
            namespace: Where the result goes.
            values: The words after the flag.
            option_string: The flag as typed.

        Raises:
            ConfigError: A word is no `key:value`, or its value does not parse.
        """
        earlier = getattr(namespace, self.dest, None)
        merged = dict(earlier) if isinstance(earlier, dict) else {}
        words = [values] if isinstance(values, str) else [str(word) for word in values or ()]
        merged.update(parse_assignments(words, option_string or self.option_strings[-1]))
        setattr(namespace, self.dest, merged)


@dataclass(frozen=True)
class ParsedFlags:
    """A command line after parsing.

    Attributes:
        values: Every flag's value, given or default.
        given: Only what the command line named, by destination.
    """

    values: argparse.Namespace
    given: dict[str, Any]


def parse_flags(parser: argparse.ArgumentParser, argv: Sequence[str], defaults: Mapping[str, Any]) -> ParsedFlags:
    """Parses a command line and tells given flags from defaults.

    Args:
        parser: The command's parser.
        argv: The words after the command's name.
        defaults: Default by destination, for every flag of the parser.

    Returns:
        The values and the part of them that was given.

    Raises:
        ConfigError: A flag or a value is wrong.
    """
    blank = argparse.Namespace(**dict.fromkeys(defaults, _NOT_GIVEN))
    parsed = vars(parser.parse_args(list(argv), blank))
    given = {name: value for name, value in parsed.items() if value is not _NOT_GIVEN}
    return ParsedFlags(argparse.Namespace(**{**defaults, **given}), given)


def boolean(text: str) -> bool:
    """Reads a truth value: true/false, yes/no, on/off or 1/0, in any case.

    Args:
        text: The word as typed.

    Returns:
        What it says.

    Raises:
        argparse.ArgumentTypeError: It is none of these words.
    """
    word = text.strip().lower()
    if word in TRUE_WORDS:
        return True
    if word in FALSE_WORDS:
        return False
    raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")


def whole_number(minimum: int) -> Callable[[str], int]:
    """Makes a reader of whole numbers from `minimum` on.

    Args:
        minimum: The least number it takes.

    Returns:
        The reader, a `type` for `add_argument`; it raises `argparse.ArgumentTypeError` for anything else.
    """

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
        if number < minimum:
            raise argparse.ArgumentTypeError(f"{number} is below {minimum}")
        return number

    return read


def number_or_auto(text: str) -> int | str:
    """Reads a whole number from 1 on, or the word `auto`.

    Args:
        text: The word as typed.

    Returns:
        The number or the word.

    Raises:
        argparse.ArgumentTypeError: It is neither.
    """
    return text if text == "auto" else whole_number(1)(text)


def positive_number(text: str) -> float:
    """Reads a number above zero.

    Args:
        text: The word as typed.

    Returns:
        The number.

    Raises:
        argparse.ArgumentTypeError: It is no number, not above zero, or infinite.
    """
    try:
        number = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return number
