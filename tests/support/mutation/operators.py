"""Mistakes that can be made in a file: each mutant is its text with one of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

RANDOMNESS, CHECK, LIMIT = "zeroed randomness", "dropped check", "loosened limit"
NAMED = (RANDOMNESS, CHECK, LIMIT)
"""The kinds of which none may live unlisted; a dropped raise is a dropped check."""

_SIGNS = """
    Lt:<= LtE:< Gt:>= GtE:> Eq:!= NotEq:== Is:is_not IsNot:is In:not_in NotIn:in
    Add:- Sub:+ Mult:/ Div:* FloorDiv:* Mod:* Pow:* MatMult:* LShift:>> RShift:<<
    BitAnd:| BitOr:& BitXor:&
"""
_SWAPPED = {getattr(ast, each.split(":")[0]): each.split(":")[1] for each in _SIGNS.split()}
"""What a sign becomes."""
LIMITS = {"acceptance.py": "Limits", "policy.py": "Policy", "budgets.py": "LedgerBudget"}
"""Files whose classes of this name hold published limits."""
_CHECKING = ("check", "_check")
_CHECKS = {"between", "whole", "positive", "epsilon", "fraction", "share", "probability"}
"""Names of checking functions: those that begin so, and the validators of `checks`."""


@dataclass(frozen=True)
class Mutant:
    """One mistake.

    Attributes:
        path: of the file, from the root.
        function: in which it is, or class, as Python calls it; "" outside of all.
        line: text of the line on which it begins.
        change: what becomes of what.
        nth: of several in one function that are alike, which.
        kind: what sort of mistake.
        at_import: whether it is met when the module is imported, as constants and defaults are.
        lines: of the file, on which it is.
        start: in bytes of the file.
        end: likewise.
        put: what stands there instead.
    """

    path: str
    function: str
    line: str
    change: str
    nth: int
    kind: str
    at_import: bool
    lines: tuple[int, int]
    start: int
    end: int
    put: str

    @property
    def key(self) -> str:
        """Names it, wherever in its function it is."""
        return "\t".join((self.path, self.function, self.line, self.change, str(self.nth)))

    @property
    def numbers(self) -> set[int]:
        """Those of its lines."""
        first, last = self.lines
        return set(range(first, last + 1))

    def applied(self, text: str) -> str:
        """The file with this mistake and with its lines where they were."""
        data = text.encode()
        kept = "\n" * data[self.start : self.end].count(b"\n")
        put = f"{self.put[:-1]}{kept})" if self.put.endswith(")") else f"{self.put}{kept}"
        return (data[: self.start] + put.encode() + data[self.end :]).decode()


def mutants_of(path: str, text: str) -> list[Mutant]:
    """All mutants of a file.

    Args:
        path: under which they are known.
        text: of the file.
    """
    found: list[Mutant] = []
    data = text.encode()
    lines = data.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    alike: dict[str, int] = {}
    for kind, function, at_import, start, end, put in _Finder(Path(path).name, data, starts).found(
        text
    ):
        first, last = data.count(b"\n", 0, start) + 1, data.count(b"\n", 0, end) + 1
        old = " ".join(data[start:end].decode().split())
        place = (path, function, lines[first - 1].decode().strip(), f"{old} → {put}")
        nth = alike[repr(place)] = alike.get(repr(place), -1) + 1
        found.append(Mutant(*place, nth, kind, at_import, (first, last), start, end, put))
    return found


_Change = tuple[str, str, bool, int, int, str]
"""Kind, function, whether at import, start, end, what is put there."""


class _Finder:
    def __init__(self, name: str, data: bytes, starts: list[int]) -> None:
        self._limits = LIMITS.get(name, "")
        self._data, self._starts = data, starts
        self._function: tuple[str, ...] = ()
        self._outside = True

    def found(self, text: str) -> Iterator[_Change]:
        yield from self._walk(ast.parse(text))

    def _at(self, node: ast.expr | ast.stmt | ast.arg) -> tuple[int, int]:
        last = self._starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        return self._starts[node.lineno - 1] + node.col_offset, last

    def _change(self, kind: str, node: ast.expr | ast.stmt, put: str) -> _Change:
        return kind, ".".join(self._function), self._outside, *self._at(node), put

    def _text(self, node: ast.expr) -> str:
        start, end = self._at(node)
        return self._data[start:end].decode()

    def _walk(self, node: ast.AST) -> Iterator[_Change]:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield from self._scope(node)
            return
        # What holds by construction, and is said for whoever reads or changes it.
        if isinstance(node, ast.Assert) or (isinstance(node, ast.keyword) and node.arg == "strict"):
            return
        if isinstance(node, ast.AnnAssign):  # its annotation is no code
            if node.value is not None:
                yield from self._assigned(node, node.value)
            return
        if isinstance(node, ast.stmt):
            yield from self._statement(node)
        if isinstance(node, ast.expr):
            yield from self._expression(node)
        if isinstance(node, ast.JoinedStr | ast.Raise):
            return  # what an error says is no promise
        for child in ast.iter_child_nodes(node):
            if not _is_any_size(node, child):
                yield from self._walk(child)

    def _scope(self, node: ast.FunctionDef | ast.ClassDef) -> Iterator[_Change]:
        # Decorators say how much is kept, and what is frozen: nothing that a result tells.
        outside: list[ast.expr] = []
        if isinstance(node, ast.FunctionDef):
            outside += [*node.args.defaults, *(each for each in node.args.kw_defaults if each)]
        before = self._function, self._outside
        self._function = (*self._function, node.name)
        for each in outside:
            yield from self._walk(each)
        self._outside = self._outside and isinstance(node, ast.ClassDef)
        for child in node.body:
            yield from self._walk(child)
        self._function, self._outside = before

    def _assigned(self, node: ast.AnnAssign, value: ast.expr) -> Iterator[_Change]:
        name = node.target.id if isinstance(node.target, ast.Name) else ""
        if self._function[-1:] == (self._limits,) and not name.startswith("_"):
            put = _loosened(name, value, self._text(value))
            if put:
                yield self._change(LIMIT, value, put)
        if not isinstance(node.target, ast.Name):
            yield from self._deleted(node)
        yield from self._walk(value)

    def _deleted(self, node: ast.stmt, kind: str = "deleted statement") -> Iterator[_Change]:
        yield self._change(kind, node, "pass")

    def _statement(self, node: ast.stmt) -> Iterator[_Change]:
        is_alone = isinstance(node, ast.If) and not node.orelse and len(node.body) == 1
        if is_alone and isinstance(node.body[0], ast.Raise):
            yield from self._deleted(node, CHECK)
        if isinstance(node, ast.Raise):
            yield from self._deleted(node, CHECK)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            called = ast.unparse(node.value.func).rpartition(".")[2]
            is_check = called.startswith(_CHECKING) or called in _CHECKS
            yield from self._deleted(node, CHECK if is_check else "deleted statement")
        elif isinstance(node, ast.Delete | ast.AugAssign) or (
            isinstance(node, ast.Assign)
            and not any(isinstance(t, ast.Name) for t in node.targets)
            and not isinstance(node.targets[0], ast.Tuple)
        ):
            yield from self._deleted(node)
        if isinstance(node, ast.AugAssign):
            yield from self._operator(node.target, node.op, node.value, "=")

    def _operator(
        self, left: ast.expr, operator: ast.AST, right: ast.expr, after: str = ""
    ) -> Iterator[_Change]:
        """The sign between two operands becomes another."""
        put = _SWAPPED.get(type(operator), "").replace("_", " ")
        start, end = self._at(left)[1], self._at(right)[0]
        between = self._data[start:end].decode()
        sign = between.strip(" ()\n\\")
        if not put or not sign or "#" in between:
            return
        at = start + len(between[: between.index(sign)].encode())
        kind = "comparison" if isinstance(operator, ast.cmpop) else "arithmetic"
        function, end = ".".join(self._function), at + len(sign.encode())
        yield kind, function, self._outside, at, end, put + after

    def _expression(self, node: ast.expr) -> Iterator[_Change]:
        if isinstance(node, ast.Compare):
            operands = [node.left, *node.comparators]
            for left, operator, right in zip(operands, node.ops, operands[1:], strict=False):
                yield from self._operator(left, operator, right)
        elif isinstance(node, ast.BinOp):
            is_text = any(isinstance(each, ast.JoinedStr) for each in (node.left, node.right))
            if not is_text and not _is_type(node):
                yield from self._operator(node.left, node.op, node.right)
        elif isinstance(node, ast.BoolOp):
            word = " and " if isinstance(node.op, ast.And) else " or "
            texts = [f"({ast.unparse(each)})" for each in node.values]
            for at in range(len(texts)):
                left = texts[:at] + texts[at + 1 :]
                yield self._change("dropped operand", node, "(" + word.join(left) + ")")
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield self._change("dropped not", node, f"({ast.unparse(node.operand)})")
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
            put = (
                str(not node.value) if isinstance(node.value, bool) else f"({self._text(node)} + 1)"
            )
            yield self._change("constant", node, put)
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
            text = ast.unparse(node)
            if text == "os.urandom" or text.rpartition(".")[2] in {"random", "_random"}:
                yield self._change(RANDOMNESS, node, "bytes")
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("Key.generate"):
            of = ast.unparse(node.func).removesuffix("generate")
            yield self._change(RANDOMNESS, node, f"{of}from_private_bytes(bytes(32))")


def _is_any_size(call: ast.AST, argument: ast.AST) -> bool:
    """Whether it is the −1 for the size that is left; NumPy takes any negative number for it."""
    return (
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr == "reshape"
        and ast.unparse(argument) == "-1"
    )


def _is_type(node: ast.BinOp) -> bool:
    """Whether it says of which types something may be."""
    sides = (node.left, node.right)
    return isinstance(node.op, ast.BitOr) and any(
        (isinstance(each, ast.Constant) and each.value is None)
        or (
            isinstance(each, ast.Name | ast.Attribute)
            and ast.unparse(each).rpartition(".")[2][0].isupper()
        )
        or ast.unparse(each) in {"int", "float", "str", "bytes", "bool"}
        for each in sides
    )


def _loosened(name: str, value: ast.expr, text: str) -> str:
    if isinstance(value, ast.Constant) and isinstance(value.value, bool):
        return str(not value.value)
    if name.startswith("largest_"):
        return f"(2 * {text})"
    if name.startswith("least_"):
        return f"({text} // 2)" if isinstance(ast.literal_eval(value), int) else f"({text} / 2)"
    return ""
