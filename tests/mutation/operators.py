"""The mutants of a file: what is broken in each, and the source that has it."""

from __future__ import annotations

import ast
import enum
import itertools
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

COMPARISONS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
ARITHMETIC = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult, ast.LShift: ast.RShift,
    ast.RShift: ast.LShift, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.BitXor: ast.BitAnd,
}  # fmt: skip
LOOSER = (
    (re.compile("_?(largest|longest)_|most_", re.I), lambda limit: 2 * limit),
    (re.compile("_?(least|smallest|shortest)_", re.I), lambda limit: type(limit)(limit / 2)),
)
"""The names of limits, and how much more each lets pass."""
DRAWS = {"random", "_random"}
"""What sources of randomness are called where they are not the operating system's by name."""


class Kind(enum.StrEnum):
    """How much it matters that a mutant dies."""

    RANDOMNESS = "zeroed randomness"
    CHECK = "dropped checks and raises"
    LIMIT = "loosened limits"
    ORDINARY = "others"


@dataclass(frozen=True)
class Mutant:
    """One change of one file.

    Attributes:
        path: of the file.
        function: in which it is, by its qualified name; empty: the module or a class.
        text: the first line of the statement that is changed.
        change: how; a number tells apart what would read alike.
        kind: how much it matters.
        lines: of the statement, first and last.
        around: of the function; of the statement, where there is none.
        assigns: the name that a statement outside of functions defines, if it does.
        number: of the node that is changed.
        choice: of what may become of it.
    """

    path: str
    function: str
    text: str
    change: str
    kind: Kind
    lines: tuple[int, int]
    around: tuple[int, int]
    assigns: str
    number: int
    choice: int

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What names it, whatever else changes in the file."""
        return self.path, self.function, self.text, self.change

    def source(self, original: str) -> str:
        """The whole file with the change, given the file."""
        tree = ast.parse(original)
        place = next(each for each in _places(tree) if each.number == self.number)
        _replace(place, list(_changes(place))[self.choice][2])
        return ast.unparse(ast.fix_missing_locations(tree))


def mutants(path: str, source: str) -> Iterator[Mutant]:
    """Every mutant of a file, in the order of its lines."""
    lines, seen = source.splitlines(), Counter[tuple[str, ...]]()
    for place in _places(ast.parse(source)):
        for choice, (kind, change, _) in enumerate(_changes(place)):
            text = lines[place.statement.lineno - 1].strip()
            alike = (place.function, text, change)
            seen[alike] += 1
            inside = place.statement if place.scope is None else place.scope
            yield Mutant(
                path=path,
                function=place.function,
                text=text,
                change=change if seen[alike] == 1 else f"{change} ({seen[alike]})",
                kind=kind,
                lines=_span(place.statement),
                around=_span(inside),
                assigns=_assigned(place) if place.scope is None else "",
                number=place.number,
                choice=choice,
            )


@dataclass(frozen=True)
class _Place:
    """A node, and where it stands."""

    number: int
    node: ast.AST
    parent: ast.AST
    statement: ast.stmt
    scope: ast.FunctionDef | None
    function: str
    spoken: bool
    """Whether it is in what is said of an error."""


def _places(tree: ast.Module) -> Iterator[_Place]:
    """The nodes that run, without docstrings and annotations."""
    numbers = itertools.count()

    def walk(node: ast.AST, place: _Place) -> Iterator[_Place]:
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "type_comment"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if not isinstance(child, ast.AST) or _is_text(child):
                    continue
                function, scope = place.function, place.scope
                if isinstance(child, ast.FunctionDef | ast.ClassDef):
                    function = f"{function}.{child.name}".lstrip(".")
                    scope = child if isinstance(child, ast.FunctionDef) else scope
                inner = _Place(
                    number=next(numbers),
                    node=child,
                    parent=node,
                    statement=child if isinstance(child, ast.stmt) else place.statement,
                    scope=scope,
                    function=function,
                    spoken=place.spoken or isinstance(child, ast.Raise | ast.JoinedStr),
                )
                yield inner
                yield from walk(child, inner)

    yield from walk(tree, _Place(-1, tree, tree, ast.Pass(lineno=1), None, "", spoken=False))


def _is_text(node: ast.AST) -> bool:
    """Whether it is a docstring, an assertion, or runs for type checkers only."""
    if isinstance(node, ast.Assert):
        return True
    if isinstance(node, ast.If) and isinstance(node.test, ast.Name):
        return node.test.id == "TYPE_CHECKING"
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


_Change = tuple[Kind, str, ast.AST]


def _changes(place: _Place) -> Iterator[_Change]:
    """What may become of a node."""
    node = place.node
    if isinstance(node, ast.stmt):
        yield from _of_statement(node, place.parent)
        return
    if place.spoken:
        return
    if _draws(node, place.parent):
        yield Kind.RANDOMNESS, "zeros", ast.Name("bytes")
    yield from _of_expression(place)


def _of_statement(node: ast.stmt, parent: ast.AST) -> Iterator[_Change]:
    match node:
        case ast.If() if _is_check(node):
            yield Kind.CHECK, "no check", ast.Pass()
        case ast.Raise() if not _is_check(parent):  # where it is, the whole check goes
            yield Kind.CHECK, "no raise", ast.Pass()
        case ast.Expr(value=ast.Call(func=called)):
            checks = ast.unparse(called).split(".")[-1].lstrip("_").startswith("check")
            yield (Kind.CHECK if checks else Kind.ORDINARY), "deleted", ast.Pass()
        case ast.Expr(value=ast.Yield() | ast.YieldFrom()) if not _is_check(parent):
            yield Kind.ORDINARY, "deleted", ast.Pass()
        case ast.AugAssign() | ast.Delete() | ast.Continue() | ast.Break():
            yield Kind.ORDINARY, "deleted", ast.Pass()
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript(), *_]):
            yield Kind.ORDINARY, "deleted", ast.Pass()
        case ast.If(test=test) | ast.While(test=test) if not isinstance(
            test, ast.Compare | ast.BoolOp | ast.UnaryOp
        ):
            flipped = ast.parse(ast.unparse(node)).body[0]
            flipped.test = ast.UnaryOp(ast.Not(), test)  # type: ignore[attr-defined]
            yield Kind.ORDINARY, "not", flipped


def _is_check(node: ast.AST) -> bool:
    """Whether it is a condition under which something is refused, and no more."""
    return (
        isinstance(node, ast.If)
        and not node.orelse
        and all(
            isinstance(each, ast.Raise)
            or (isinstance(each, ast.Expr) and isinstance(each.value, ast.Yield))
            for each in node.body
        )
    )


def _of_expression(place: _Place) -> Iterator[_Change]:
    match place.node:
        case ast.Compare(left=left, ops=operators, comparators=others):
            for at, operator in enumerate(operators):
                other = COMPARISONS[type(operator)]
                changed = [*operators[:at], other(), *operators[at + 1 :]]
                names = type(operator).__name__, other.__name__
                yield Kind.ORDINARY, " → ".join(names), ast.Compare(left, changed, others)
        case ast.BoolOp(op=operator, values=values):
            for at, value in enumerate(values):
                rest = values[:at] + values[at + 1 :]
                left_over = rest[0] if len(rest) == 1 else ast.BoolOp(operator, rest)
                yield Kind.ORDINARY, f"without {ast.unparse(value)[:60]}", left_over
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield Kind.ORDINARY, "without its sign", operand
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in ARITHMETIC:
            other = ARITHMETIC[type(operator)]
            names = type(operator).__name__, other.__name__
            yield Kind.ORDINARY, " → ".join(names), ast.BinOp(left, other(), right)
        case ast.comprehension(ifs=[_, *_]) as loop:
            every = ast.comprehension(loop.target, loop.iter, [], loop.is_async)
            yield Kind.ORDINARY, "unfiltered", every
        case ast.Constant(value=bool() as value):
            yield Kind.ORDINARY, f"{value} → {not value}", ast.Constant(not value)
        case ast.Constant(value=int() | float() as value):
            for pattern, looser in LOOSER:
                if pattern.match(_assigned(place)):
                    limit = looser(value)
                    yield Kind.LIMIT, f"{value} → {limit}", ast.Constant(limit)
            more = value + 1 if isinstance(value, int) else 2 * value or 1.0
            yield Kind.ORDINARY, f"{value} → {more}", ast.Constant(more)
        case ast.Constant(value=bytes() as value) if value:
            yield Kind.ORDINARY, "other bytes", ast.Constant(b"!" + value)


def _draws(node: ast.AST, parent: ast.AST) -> bool:
    """Whether it is a source of random bytes, called or given away."""
    if isinstance(node, ast.Attribute) and node.attr == "urandom":
        return True
    called = isinstance(parent, ast.Call) and parent.func is node and len(parent.args) == 1
    name = getattr(node, "id", getattr(node, "attr", ""))
    return called and isinstance(node, ast.Name | ast.Attribute) and name in DRAWS


def _assigned(place: _Place) -> str:
    """The name that the statement of a place gives a value, if it does."""
    match place.statement:
        case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
            return name
    return ""


def _span(node: ast.stmt) -> tuple[int, int]:
    if isinstance(node, ast.If | ast.While | ast.For | ast.With):  # not what is under it
        return node.lineno, max(node.lineno, node.body[0].lineno - 1)
    return node.lineno, node.end_lineno or node.lineno


def _replace(place: _Place, replacement: ast.AST) -> None:
    for name, value in ast.iter_fields(place.parent):
        if value is place.node:
            setattr(place.parent, name, replacement)
        elif isinstance(value, list):
            value[:] = [replacement if each is place.node else each for each in value]
