"""YAML, read safely and as people mean it.

Beyond `yaml.safe_load`: `1e-3` is a number (YAML 1.1 makes it a string), `12:30` and `2024-01-31` are strings (YAML 1.1 makes
them 750 and a date).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from lit_sb3_ray.config.problems import problem

if TYPE_CHECKING:
    from yaml import SafeLoader as _Base
else:
    _Base = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

# Far above any file that somebody has written; a page of nested aliases can stand for billions.
MAX_NODES = 1_000_000

_ORDERED_DICT = "tag:yaml.org,2002:python/object/apply:collections.OrderedDict"
_TUPLE = "tag:yaml.org,2002:python/tuple"
_MERGE = "tag:yaml.org,2002:merge"
_REPLACED = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float", "tag:yaml.org,2002:timestamp")
_SCALAR_TAGS = {f"tag:yaml.org,2002:{name}" for name in ("int", "float", "bool", "null")}
_INT = re.compile(r"[-+]?(0b[01_]+|0x[0-9a-fA-F_]+|0[0-7_]*|[1-9][0-9_]*)$")
_FLOAT = re.compile(
    r"""[-+]?(([0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)([eE][-+]?[0-9]+)?
    |[0-9][0-9_]*[eE][-+]?[0-9]+|\.(inf|Inf|INF))$|\.(nan|NaN|NAN)$""",
    re.VERBOSE,
)


class PlainLoader(_Base):
    """Safe YAML with the numbers of YAML 1.2, in which no key stands twice and nothing contains itself."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - the loader's own protocol
        first: [(tag, pattern) for tag, pattern in resolvers if tag not in _REPLACED]
        for first, resolvers in _Base.yaml_implicit_resolvers.items()
    }

    def get_single_node(self) -> yaml.nodes.Node | None:
        """Reads the document's nodes, and checks them before merge keys are dissolved, which override silently."""
        node: yaml.nodes.Node | None = super().get_single_node()
        if node is not None:
            _check_nodes(node, {}, ())
        return node


def _check_nodes(node: yaml.nodes.Node, sizes: dict[yaml.nodes.Node, int], above: tuple[yaml.nodes.Node, ...]) -> int:
    """Checks a node and all below it; returns how many they are when every alias is replaced by what it names."""
    if node in above:
        raise _refusal("an alias stands inside of what it names", node)
    if isinstance(node, yaml.ScalarNode):
        return 1
    if node not in sizes:
        if isinstance(node, yaml.MappingNode):
            _check_keys(node)
        parts = [part for item in node.value for part in (item if isinstance(item, tuple) else (item,))]
        sizes[node] = 1 + sum(_check_nodes(part, sizes, (*above, node)) for part in parts)
        if sizes[node] > MAX_NODES:
            raise _refusal(f"with what its aliases name it has more than {MAX_NODES} values", node)
    return sizes[node]


def _check_keys(node: yaml.MappingNode) -> None:
    keys: set[tuple[str, str]] = set()
    for key, _ in node.value:
        if isinstance(key, yaml.ScalarNode) and key.tag != _MERGE:
            if (key.tag, key.value) in keys:
                raise _refusal(f"the key {key.value!r} stands twice in one mapping", key)
            keys.add((key.tag, key.value))


def _refusal(text: str, node: yaml.nodes.Node) -> yaml.constructor.ConstructorError:
    return yaml.constructor.ConstructorError(None, None, text, node.start_mark)


PlainLoader.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+0123456789."))
PlainLoader.add_implicit_resolver("tag:yaml.org,2002:int", _INT, list("-+0123456789"))


class RunFileLoader(PlainLoader):
    """For the files in rl_zoo3's run folders, which carry two Python tags: ordered dicts become dicts, tuples stay tuples."""


def _ordered_dict(loader: RunFileLoader, node: yaml.nodes.Node) -> dict[Any, Any]:
    arguments = loader.construct_sequence(node, deep=True) if isinstance(node, yaml.SequenceNode) else []
    pairs = arguments[0] if arguments else []
    return {pair[0]: pair[1] for pair in pairs}


def _tuple(loader: RunFileLoader, node: yaml.nodes.Node) -> tuple[Any, ...]:
    return tuple(loader.construct_sequence(node, deep=True)) if isinstance(node, yaml.SequenceNode) else ()


RunFileLoader.add_constructor(_ORDERED_DICT, _ordered_dict)
RunFileLoader.add_constructor(_TUPLE, _tuple)


def parse_yaml(text: str, where: str, *, run_file: bool = False) -> Any:
    """Reads one YAML document.

    Args:
        text: The document.
        where: The file or flag it was read from.
        run_file: Whether the tags of rl_zoo3's run files are understood; all other tags are refused in any case.

    Raises:
        ConfigError: The text is no YAML, or has a tag that is refused, a key twice, or an alias inside of what it names.
    """
    loader = RunFileLoader if run_file else PlainLoader
    try:
        return _read(loader, text)
    except yaml.constructor.ConstructorError as error:
        reason = " ".join(str(error.problem).split())
        raise problem(f"refused YAML content: {reason}{_line(error)}", where) from error
    except yaml.MarkedYAMLError as error:
        reason = " ".join(f"{error.context or ''} {error.problem or ''}".split())
        raise problem(f"not valid YAML: {reason}{_line(error)}", where) from error
    except yaml.YAMLError as error:
        raise problem(f"not valid YAML: {' '.join(str(error).split())}", where) from error
    except (ValueError, RecursionError) as error:
        raise problem(f"not valid YAML: {' '.join(str(error).split())}", where) from error


def _read(loader: type[PlainLoader], text: str) -> Any:
    reader = loader(text)
    try:
        return reader.get_single_data()
    finally:
        reader.dispose()


def parse_scalar(text: str) -> Any:
    """Reads a plain YAML scalar: a number, true or false, null, or else the text itself, whatever characters it has."""
    loader = PlainLoader("")
    tag = loader.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
    if tag not in _SCALAR_TAGS:
        return text
    try:
        return loader.construct_object(yaml.ScalarNode(tag, text))
    except ValueError:
        return text


def read_yaml(path: str | Path, *, run_file: bool = False) -> Any:
    """Reads a YAML file.

    Args:
        path: The file.
        run_file: As in `parse_yaml`.

    Raises:
        ConfigError: There is no such file, it cannot be read, or `parse_yaml` refuses it.
    """
    return parse_yaml(read_text(path), str(path), run_file=run_file)


def read_text(path: str | Path) -> str:
    """Reads a text file.

    Raises:
        ConfigError: There is no such file, or it cannot be read as UTF-8 text.
    """
    try:
        return Path(path).read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise problem(f"there is no file {str(path)!r}", "") from error
    except UnicodeDecodeError as error:
        raise problem(f"{str(path)!r} is no text file", "") from error
    except OSError as error:
        raise problem(f"{str(path)!r} cannot be read: {error.strerror}", "") from error


def _line(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark
    return f", line {mark.line + 1}" if mark is not None else ""
