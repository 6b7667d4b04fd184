"""Texts of the dashboard, as they stand in its modules and templates."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import jinja2
from jinja2 import nodes

import earshot_server

_SERVER = Path(earshot_server.__path__[0])
DASHBOARD = _SERVER / "dashboard"
TEXTS = DASHBOARD / "texts"
_MODULES = (*DASHBOARD.glob("*.py"), *(_SERVER / "api").glob("*.py"))
_TEXTS_OF_CALL = {"_": 1, "gettext": 1, "noted": 1, "ngettext": 2}
"""How many of the first arguments of each function are texts."""


def english() -> frozenset[str]:
    """Return every text that a page may show in another language."""
    modules = (text for module in _MODULES for text in _of_module(module.read_text("utf-8")))
    templates = (text for page in DASHBOARD.rglob("*.html") for text in _of_template(page))
    return frozenset((*modules, *templates))


def _of_module(source: str) -> Iterator[str]:
    for call in ast.walk(ast.parse(source)):
        if isinstance(call, ast.Call):
            name = getattr(call.func, "id", getattr(call.func, "attr", ""))
            arguments = [getattr(each, "value", None) for each in call.args]
            yield from _of_call(name, arguments)


def _of_template(page: Path) -> Iterator[str]:
    for call in jinja2.Environment().parse(page.read_text("utf-8")).find_all(nodes.Call):  # noqa: S701
        name = getattr(call.node, "name", getattr(call.node, "attr", ""))
        yield from _of_call(name, [getattr(each, "value", None) for each in call.args])


def _of_call(name: str, arguments: list[object]) -> Iterator[str]:
    if name == "counted" and isinstance(arguments[-1], str):
        yield from (f"%(number)s {arguments[-1]}", f"%(number)s {arguments[-1]}s")
    for text in arguments[: _TEXTS_OF_CALL.get(name, 0)]:
        if isinstance(text, str):
            yield text
