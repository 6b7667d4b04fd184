"""Finds definitions that no reachable code names, statically.

Names are followed through imports. An attribute of anything but a module reaches every method of
that name. So code that runs is not reported, and dead code may hide behind a namesake.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

PLAIN = {
    *("ABC", "BaseException", "Enum", "Exception", "Generic", "IntEnum", "Module", "NamedTuple"),
    *("Protocol", "StrEnum", "Struct"),
}
"""Library classes that do not call methods of their subclasses; any other may."""


_NAMED = re.compile("__.+__|_repr_html_")
"""Names by which Python and notebooks call a method."""


class Names(NamedTuple):
    """Names in some code.

    Attributes:
        parts: definitions and modules.
        values: modules that are used as values, so that attributes of anything may be theirs.
        words: attributes of anything else, and text that could name one.
    """

    parts: set[str]
    values: set[str]
    words: set[str]


class Code:
    """Modules, divided into parts: definitions, methods, and the rest of each class and module.

    Args:
        texts: source of each module, by its dotted name.
        by_text: folders whose modules are imported by names that are computed from text.
    """

    def __init__(self, texts: Mapping[str, str], by_text: Iterable[str] = ()) -> None:
        self.parts: dict[str, list[ast.AST]] = {}
        self._imports: dict[str, dict[str, set[str]]] = {}
        self._packages = {module.partition(".")[0] for module in texts}
        self._by_text = set(by_text)
        for module, text in texts.items():
            tree = ast.parse(text)
            self._imports[module] = _imported(tree)
            self._split(module, module, tree.body)
        self._names = {part: self._read(part) for part in self.parts}

    def unreached(self, roots: Iterable[str], words: Iterable[str] = ()) -> set[str]:
        """Return the outermost parts that these parts and words do not reach."""
        done, values, said, todo = set[str](), set[str](), set(words), set(roots)
        while todo:
            done |= todo
            found = [self._names[part] for part in todo]
            values = values.union(*(names.values for names in found))
            said = said.union(*(names.words for names in found))
            todo = set().union(*(names.parts for names in found))
            for part in self.parts:
                owner, _, name = part.rpartition(".")
                if name not in said:
                    continue
                if part in self._imports and owner.rpartition(".")[2] in self._by_text:
                    values.add(part)
                elif owner in values or (owner in done and owner not in self._imports):
                    todo.add(part)
            owners = {part.rpartition(".")[0] for part in done}
            todo = (todo | values | owners & self.parts.keys()) - done
        return {part for part in self.parts.keys() - done if part.rpartition(".")[0] in {"", *done}}

    def resolve(self, dotted: str) -> set[str]:
        """Return the parts that a dotted name stands for, through imports."""
        if dotted in self.parts:
            return {dotted}
        module, _, name = dotted.rpartition(".")
        sources = self._imports.get(module, {}).get(name, ())
        return set[str]().union(*map(self.resolve, sources))

    def _split(self, module: str, owner: str, body: Iterable[ast.stmt]) -> None:
        rest = self.parts.setdefault(owner, [])
        for node in body:
            for name in _defined(node, owner == module) or [""]:
                part = f"{owner}.{name}"
                if not name or _NAMED.fullmatch(name) or self._handed_on(module, node):
                    rest.append(node)
                elif isinstance(node, ast.ClassDef) and not self._called(module, node):
                    self.parts[part] = [*node.decorator_list, *node.bases, *node.keywords]
                    self._split(module, part, node.body)
                else:
                    self.parts.setdefault(part, []).append(node)

    def _handed_on(self, module: str, node: ast.stmt) -> bool:
        """Tell whether a decorator made in the module registers it, as Typer's and Flask's do."""
        decorators = getattr(node, "decorator_list", ())
        names = (_chain(each.func if isinstance(each, ast.Call) else each) for each in decorators)
        return any(len(each) > 1 and each[0] not in self._imports[module] for each in names)

    def _called(self, module: str, node: ast.ClassDef) -> bool:
        """Tell whether it has a base in a library that may call its methods."""
        for base in node.bases:
            names = _chain(base.value if isinstance(base, ast.Subscript) else base) or [""]
            sources = self._imports[module].get(names[0], ())
            foreign = not self._packages.issuperset(each.partition(".")[0] for each in sources)
            if (foreign or hasattr(builtins, names[0])) and names[-1] not in PLAIN:
                return True
        return False

    def _read(self, part: str) -> Names:
        module = part
        while module not in self._imports:
            module = module.rpartition(".")[0]
        found, todo = Names(set(), set(), set()), list(self.parts[part])
        while todo:
            node = todo.pop()
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                continue  # a docstring
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                continue
            if names := _chain(node):
                self._follow(module, names, found)
                continue
            todo += _children(node)
            if isinstance(node, ast.Attribute):
                found.words.add(node.attr)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.words.update(re.findall(r"\A[\w-]+\Z", node.value.replace("-", "_")))
            elif isinstance(node, ast.Import | ast.ImportFrom):
                sources = {getattr(node, "module", None), *(each.name for each in node.names)}
                found.parts.update(self._imports.keys() & sources)
        return found

    def _follow(self, module: str, names: list[str], found: Names) -> None:
        """Add what `a.b.c` names in a module; attributes of library modules are not ours."""
        sources = self._imports[module].get(names[0])
        here = set[str]().union(*map(self.resolve, sources or [f"{module}.{names[0]}"]))
        for place, name in enumerate(names[1:], start=1):
            modules = here & self._imports.keys()
            inner = set[str]().union(*(self.resolve(f"{each}.{name}") for each in modules))
            if not inner:
                found.words.update(names[place:] if here or not sources else ())
                break
            here = inner
        else:
            found.values.update(here & self._imports.keys())
        found.parts.update(here)


def _imported(tree: ast.Module) -> dict[str, set[str]]:
    """Return the dotted names behind each name that is imported anywhere in a module."""
    names: dict[str, set[str]] = {}
    todo: list[ast.AST] = [tree]
    while todo:
        node = todo.pop()
        todo += (each for each in _children(node) if isinstance(each, _HOLDERS))
        if isinstance(node, ast.ImportFrom):
            for each in node.names:
                names.setdefault(each.asname or each.name, set()).add(f"{node.module}.{each.name}")
        elif isinstance(node, ast.Import):
            for each in node.names:
                whole = each.name if each.asname else each.name.partition(".")[0]
                names.setdefault(each.asname or whole, set()).add(whole)
    return names


_HOLDERS = (ast.stmt, ast.excepthandler, ast.match_case)
"""Syntax that may hold statements."""


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes below a node, as `ast.iter_child_nodes` does in twice the time."""
    for value in vars(node).values():
        if isinstance(value, list):
            yield from (each for each in value if isinstance(each, ast.AST))
        elif isinstance(value, ast.AST):
            yield value


def _chain(node: ast.AST) -> list[str]:
    """Return the names in `a.b.c`; nothing for other expressions."""
    if isinstance(node, ast.Attribute):
        before = _chain(node.value)
        return [*before, node.attr] if before else []
    return [node.id] if isinstance(node, ast.Name) else []


def _defined(node: ast.stmt, of_module: bool) -> list[str]:
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return [node.name]
    if not of_module or not isinstance(node, ast.Assign | ast.AnnAssign):
        return []
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [each.id for one in targets for each in ast.walk(one) if isinstance(each, ast.Name)]
