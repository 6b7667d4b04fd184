"""A folder of tests needs the packages below it alone, so that it can be run alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
LAYERS = {
    "protocol": "protocol",
    "client": "protocol client",
    "server": "protocol client server",  # what serves phones is tested by phones
    "models": "protocol client models",  # and what phones load by what loads it
    "simulations": "protocol client server models simulations",
    "studies": "protocol client server models simulations studies",
}
"""Packages that the tests of one may import, themselves or through `tests/support`."""
IDEAL = "earshot_simulations.engine.ideal"
"""Summation without cryptography: it needs the protocol alone, and makes tests of others fast."""


def imported(text: str) -> Iterator[str]:
    """Modules that a file imports, wherever in it, and those of ours that it runs as programs."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{each.name}" for each in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from re.findall(r"^support(?:\.\w+)+$", node.value)


def needed(text: str) -> dict[str, str]:
    """Packages of ours that a file needs, and by which module of `tests/support`, if by one."""
    packages: dict[str, str] = {}
    seen: set[str] = set()
    left = [(name, "") for name in imported(text)]
    while left:
        name, through = left.pop()
        if name.startswith("earshot_") and not name.startswith(IDEAL):
            packages.setdefault(name.partition(".")[0].removeprefix("earshot_"), through)
        file = TESTS.joinpath(*name.split(".")).with_suffix(".py")
        if name.startswith("support.") and name not in seen and file.is_file():
            seen.add(name)
            left += [(each, through or name) for each in imported(file.read_text("utf-8"))]
    return packages


@pytest.mark.parametrize("folder", LAYERS)
def test_tests_import_what_is_below_them(folder: str) -> None:
    upward = {
        (path.relative_to(TESTS).as_posix(), package, through)
        for path in (TESTS / folder).rglob("*.py")
        for package, through in needed(path.read_text("utf-8")).items()
        if package not in LAYERS[folder].split()
    }
    assert upward == set(), "move it to the folder of the highest package that it imports"


def test_only_tests_of_the_whole_have_no_layer() -> None:
    folders = {path.parent.name for path in TESTS.glob("*/test_*.py")}
    assert folders - LAYERS.keys() == {"web", "system"}


def test_the_summation_that_all_may_use_needs_the_protocol_alone() -> None:
    file = TESTS.parent.joinpath("simulations", *IDEAL.split(".")).with_suffix(".py")
    assert needed(file.read_text("utf-8")).keys() == {"protocol"}


@pytest.mark.parametrize(
    ("text", "packages"),
    [
        ("from earshot_server.api import app", {"server": ""}),
        ("def f():\n    import earshot_models.audio", {"models": ""}),
        (f"from {IDEAL} import IDEAL", {}),
        ("from support import signed", {"protocol": "support.signed"}),
        ("run('-m', 'support.killed_helper')", {"server": "support.killed_helper"}),
    ],
)
def test_an_upward_import_is_noticed(text: str, packages: dict[str, str]) -> None:
    assert needed(text).items() >= packages.items()
    assert bool(needed(text)) == bool(packages)
