"""No product code is there for tests alone: commands, libraries or documented programs reach it."""

from __future__ import annotations

import gc
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest
from support.documented import blocks
from support.reached import Code

ROOT = Path(__file__).resolve().parents[2]
ROOMS = [ROOT / room for room in ("protocol", "client", "server", "models", "simulations")]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BY_TEXT = ("commands", "dziedzic", "muschiol")
"""Folders whose modules are imported by names that are computed from text."""
KEPT = {
    "earshot_models.teachers.ensemble.train": "makes what `earshot pate label` opens",
    "earshot_server.api.figures.StoredFigures.collect": "called by Prometheus' client",
    "earshot_server.api.metrics.Metrics.collect": "called by Prometheus' client",
    "earshot_server.helper.figures.HelperFigures.collect": "called by Prometheus' client",
}
"""Definitions that no code or page read here reaches, and why they stay."""


def modules(folder: Path) -> dict[str, str]:
    """Return the text of each module below a folder on the import path, by its name."""
    names = {path: path.relative_to(folder).with_suffix("") for path in folder.rglob("*.py")}
    return {
        ".".join(name.parts).removesuffix(".__init__"): path.read_text("utf-8")
        for path, name in names.items()
    }


def shown() -> dict[str, str]:
    """Return the programs of the documentation as modules: a page's blocks are one program."""
    texts = ["\n".join(blocks(page.read_text("utf-8"), "python")) for page in PAGES]
    texts += [path.read_text("utf-8") for path in sorted((ROOT / "docs/vectors").glob("*.py"))]
    return {f"shown{place}": text for place, text in enumerate(texts)}


def starts(code: Code) -> set[str]:
    """Return what is run: commands, and the programs of the documentation."""
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]
    found = {script.replace(":", ".") for script in scripts.values()}
    return found | {
        part for part in code.parts if part.startswith("shown") or part.endswith("__main__")
    }


def words() -> list[str]:
    """Return all names in the HTML templates."""
    text = "".join(path.read_text("utf-8") for room in ROOMS for path in room.rglob("*.html"))
    return re.findall(r"\w+", " ".join(re.findall(r"\{[{%].*?[%}]\}", text)))


@pytest.fixture
def no_collection() -> Iterator[None]:
    """Keep Python from searching a million nodes of syntax for garbage, half of the time."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collection")
def test_nothing_is_there_for_tests_alone() -> None:
    product = {name: text for room in ROOMS for name, text in modules(room).items()}
    code = Code(product | shown(), BY_TEXT)
    roots = starts(code)
    alone = code.unreached(roots, words())
    assert KEPT.keys() - alone == set(), "reached or gone, so no longer an exception"
    alone = code.unreached(roots | KEPT.keys(), words())
    assert alone == set(), "reached by tests alone, or by nothing"


SMALL = {
    "command": """\
        import typer
        from small import tools
        from small.shapes import Square as Form
        app = typer.Typer()

        @app.command()
        def draw():
            tools.paint(Form().area, getattr(tools, "painted"), tools.log)
        """,
    "tools": """\
        import logging
        LIMIT, SPARE = 3, 4

        def paint(size, how, log):
            return how(min(size, LIMIT))

        def painted(size):
            "`unused` of `small.tools` is no mention."
            return size

        def unused():
            return helper()

        def helper():
            return SPARE

        def recursive():
            return recursive()

        class Log(logging.Handler):
            def emit(self, record): ...

        log = Log()
        """,
    "shapes": """\
        from typing import Protocol

        class Shape(Protocol):
            @property
            def area(self): ...
            def turned(self): ...

        class Square:
            def __init__(self): self.side = 2
            @property
            def area(self): return self._squared()
            def _squared(self): return self.side ** 2
            def turned(self): return self
        """,
    "forgotten": "def anything(): ...",
}


def test_what_only_the_dead_name_is_dead_too(tmp_path: Path) -> None:
    folder = tmp_path / "small"
    folder.mkdir()
    (folder / "__init__.py").touch()
    for name, text in SMALL.items():
        (folder / f"{name}.py").write_text(dedent(text), "utf-8")
    code = Code(modules(tmp_path))
    dead = {"tools.unused", "tools.helper", "tools.SPARE", "tools.recursive"}
    dead |= {"shapes.Shape", "shapes.Square.turned", "forgotten"}
    assert code.unreached(["small.command"]) == {f"small.{name}" for name in dead}
    # As soon as one of them is reached, so is what it names.
    alive = {"tools.unused", "tools.helper", "tools.SPARE"}
    found = code.unreached(["small.command", "small.tools.unused"], ["turned"])
    assert found == {f"small.{name}" for name in dead - alive - {"shapes.Square.turned"}}
