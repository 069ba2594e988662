"""Values written as Python expressions, such as `dict(net_arch=[64, 64], activation_fn=nn.ReLU)`: parsed, never evaluated.

What is understood: numbers, strings, True, False and None; lists, tuples and dicts, also as `dict(a=1)`, `list([1])` and
`tuple([1])`; `+ - * / // % **` on numbers within bounds; the constants `np.inf`, `np.nan`, `np.pi` (also `math.`); and
classes: `nn.ReLU`, `th.optim.AdamW`, the buffers of SB3 by name, `RMSpropTFLike`, or the dotted path of a torch module,
optimizer or buffer. Anything else is refused unlooked at, above all a call of anything but dict, list and tuple.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from typing import Any

from lit_sb3_ray.config.classes import ClassKind, resolve_class
from lit_sb3_ray.config.problems import problem
from lit_sb3_ray.errors import ConfigError, unknown

NAMED_CLASSES = {
    "RMSpropTFLike": "stable_baselines3.common.sb2_compat.rmsprop_tf_like:RMSpropTFLike",
    "HerReplayBuffer": "stable_baselines3.her.her_replay_buffer:HerReplayBuffer",
    "ReplayBuffer": "stable_baselines3.common.buffers:ReplayBuffer",
    "DictReplayBuffer": "stable_baselines3.common.buffers:DictReplayBuffer",
    "NStepReplayBuffer": "stable_baselines3.common.buffers:NStepReplayBuffer",
    "RolloutBuffer": "stable_baselines3.common.buffers:RolloutBuffer",
    "DictRolloutBuffer": "stable_baselines3.common.buffers:DictRolloutBuffer",
}
"""Classes that may be written without their module."""

PREFIXES = {"nn": "torch.nn", "th": "torch", "torch": "torch", "sb3": "stable_baselines3"}
"""Short names of packages that rl_zoo3's files use."""

CONSTANTS = {"inf": math.inf, "nan": math.nan, "pi": math.pi, "e": math.e}
CONSTANT_PREFIXES = ("np", "numpy", "math")

MAX_LENGTH = 10_000
MAX_EXPONENT = 64
MAX_NUMBER = 1e100

BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {ast.UAdd: operator.pos, ast.USub: operator.neg}


def parse_expression(text: str, where: str) -> Any:
    """Reads a value from a Python expression of the kinds listed above.

    Args:
        text: The expression.
        where: The key and the file or flag it was read from.

    Returns:
        The value: plain data, in which classes may stand.

    Raises:
        ConfigError: The text is no expression, or has a piece that is not understood; nothing was called.
    """
    source = text.strip()
    if len(source) > MAX_LENGTH:
        raise problem(f"an expression of {len(source)} characters is too long (at most {MAX_LENGTH})", where)
    try:
        body = ast.parse(source, mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else str(error) or "nested too deeply"
        raise problem(f"{_shorten(source)!r} is no readable expression: {reason}", where) from error
    try:
        return _Reader(source, where).read(body)
    except RecursionError as error:
        raise problem(f"{_shorten(source)!r} is nested too deeply", where) from error


class _Reader:
    """One walk over one expression."""

    def __init__(self, source: str, where: str) -> None:
        self.source = source
        self.where = where
        self.readers: dict[type[ast.expr], Callable[[Any], Any]] = {
            ast.Constant: self._constant,
            ast.List: lambda node: [self.read(item) for item in node.elts],
            ast.Tuple: lambda node: tuple(self.read(item) for item in node.elts),
            ast.Dict: self._dict,
            ast.Call: self._call,
            ast.UnaryOp: self._unary,
            ast.BinOp: self._binary,
            ast.Name: self._name,
            ast.Attribute: self._path,
        }

    def read(self, node: ast.expr) -> Any:
        reader = self.readers.get(type(node))
        if reader is None:
            raise self._refused(node, "is not allowed here")
        return reader(node)

    def _refused(self, node: ast.AST, reason: str) -> ConfigError:
        piece = ast.get_source_segment(self.source, node) or self.source
        return problem(f"`{_shorten(piece)}` {reason}", self.where)

    def _constant(self, node: ast.Constant) -> Any:
        if node.value is None or isinstance(node.value, bool | int | float | str):
            return node.value
        raise self._refused(node, "is neither a number nor a string")

    def _dict(self, node: ast.Dict) -> dict[Any, Any]:
        result: dict[Any, Any] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if not isinstance(key, ast.Constant):
                raise self._refused(node, "has a key that is not a plain string or number")
            result[self._constant(key)] = self.read(value)
        return result

    def _call(self, node: ast.Call) -> Any:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name == "dict" and not node.args and all(keyword.arg for keyword in node.keywords):
            return {str(keyword.arg): self.read(keyword.value) for keyword in node.keywords}
        if name in ("list", "tuple") and not node.keywords and len(node.args) <= 1:
            items = self.read(node.args[0]) if node.args else ()
            if not isinstance(items, list | tuple):
                raise self._refused(node, f"needs a list or tuple inside {name}()")
            return list(items) if name == "list" else tuple(items)
        if name in ("dict", "list", "tuple"):
            raise self._refused(node, "is not a call of the form dict(key=value), list([...]) or tuple([...])")
        raise self._refused(node, "is a function call and was not made: only dict, list and tuple may be called")

    def _number(self, node: ast.expr) -> int | float:
        value = self.read(node)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return value
        raise self._refused(node, "is no number, and arithmetic is for numbers only")

    def _unary(self, node: ast.UnaryOp) -> Any:
        operation = UNARY.get(type(node.op))
        if operation is None:
            raise self._refused(node, "uses an operator that is not allowed")
        return operation(self._number(node.operand))

    def _binary(self, node: ast.BinOp) -> Any:
        operation = BINARY.get(type(node.op))
        if operation is None:
            raise self._refused(node, "uses an operator that is not allowed")
        left, right = self._number(node.left), self._number(node.right)
        if isinstance(node.op, ast.Pow) and (abs(right) > MAX_EXPONENT or abs(left) > MAX_NUMBER):
            raise self._refused(node, f"is a power beyond bounds (exponents go to {MAX_EXPONENT})")
        try:
            result = operation(left, right)
        except (ZeroDivisionError, OverflowError) as error:
            raise self._refused(node, f"cannot be computed: {error}") from error
        # Compared and not turned into a float, for which a whole number may be too large.
        if isinstance(result, complex) or MAX_NUMBER < abs(result) < math.inf:
            raise self._refused(node, "gives a number beyond bounds")
        return result

    def _name(self, node: ast.Name) -> Any:
        path = NAMED_CLASSES.get(node.id)
        if path is None:
            raise unknown("name", node.id, [*NAMED_CLASSES, "True", "False", "None", "dict", "nn"], self.where)
        return resolve_class(path, ClassKind.VALUE, self.where)

    def _path(self, node: ast.Attribute) -> Any:
        parts: list[str] = []
        current: ast.expr = node
        while isinstance(current, ast.Attribute):
            parts.append(current.attr)
            current = current.value
        if not isinstance(current, ast.Name):
            # The inner piece is what matters: reading it refuses a call by naming it.
            self.read(current)
            raise self._refused(node, "is no dotted path of a class")
        first, rest = current.id, list(reversed(parts))
        if first in CONSTANT_PREFIXES:
            return self._named_constant(node, rest)
        return resolve_class(".".join([PREFIXES.get(first, first), *rest]), ClassKind.VALUE, self.where)

    def _named_constant(self, node: ast.Attribute, rest: list[str]) -> float:
        if len(rest) != 1 or rest[0] not in CONSTANTS:
            raise self._refused(node, f"is not allowed: of numpy and math, only {', '.join(CONSTANTS)} are")
        return CONSTANTS[rest[0]]


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 100 else f"{line[:97]}..."
