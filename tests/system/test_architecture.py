"""docs/architecture.md and docs/thesis.md name code that is there; a run goes as its walk says."""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

from earshot_simulations.commands.simulate import app
from earshot_simulations.phases.settings import PhaseSettings

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
TEXT = (DOCS / "architecture.md").read_text(encoding="utf-8")
THESIS = (DOCS / "thesis.md").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
PACKAGES = sorted(
    each
    for folder in ("protocol", "client", "server", "models", "simulations")
    for each in (ROOT / folder).glob("earshot_*")
    if each.is_dir() and not each.name.endswith(".egg-info")
)
NAMES = sorted(set(re.findall(r"`(earshot_[a-z_]+(?:\.\w+)+)`", TEXT + THESIS)))
FILES = sorted(set(re.findall(r"`((?:tests|docs|protocol|client|server)/[\w/.]+)`", TEXT)))
RUN = (
    "--phones 12 --recordings 5 --scenes 3 --cells 4 --sums 0 --epsilon 12 --corrupted 0 "
    "--summation ideal --policy anything --jobs 1"
)
MOST_FILES = 11
"""Files that a simulated run is read in."""
WALKS = re.findall(r"^\*\*(One [\w ]+)\*\*", TEXT, re.MULTILINE)


def test_it_walks_through_the_whole_house() -> None:
    walks = (
        "recording, ballot, sum by two operators, HTTP answer, simulated run, private label, study"
    )
    assert [f"One {walk}" for walk in walks.split(", ")] == WALKS
    for walk in TEXT.split("## Seven walks")[1].split("## How a step")[0].split("**One ")[1:]:
        assert len(re.findall(r"`earshot_[\w.]+`", walk)) >= 7


def named(name: str) -> Any:
    """What a dotted name means."""
    path = name.split(".")
    for depth in range(len(path), 0, -1):
        try:
            thing: Any = importlib.import_module(".".join(path[:depth]))
        except ModuleNotFoundError:
            continue
        for attribute in path[depth:]:
            thing = getattr(thing, attribute)
        return thing
    raise ModuleNotFoundError(name)


@pytest.mark.parametrize("name", NAMES)
def test_what_it_names_exists(name: str) -> None:
    thing = named(name)
    assert inspect.ismodule(thing) or callable(thing) or name.rpartition(".")[2].isupper()


@pytest.mark.slow
def test_a_simulated_run_goes_as_its_walk_says(tmp_path: Path) -> None:
    """Functions are called in its order, and settings enter no file that it does not name."""
    walk = TEXT.partition("**One simulated run**")[2].partition("**One ")[0]
    things = [named(name) for name in re.findall(r"`(earshot_[a-z_]+(?:\.\w+)+)`", walk)]
    called: dict[CodeType, int] = {}
    settled: set[str] = set()

    def look(frame: FrameType, event: str, argument: object) -> None:
        del argument
        code, module = frame.f_code, frame.f_globals.get("__name__", "")
        if event != "call" or code in called or not module.startswith("earshot_"):
            return
        called[code] = len(called)
        given = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        if any(isinstance(frame.f_locals.get(name), PhaseSettings) for name in given):
            settled.add(module)

    words = [*RUN.split(), "--out", str(tmp_path / "run")]
    sys.setprofile(look)
    try:
        app(words, result_action="return_value")
    finally:
        sys.setprofile(None)
    order = [called[each.__code__] for each in things if inspect.isfunction(each)]
    assert order == sorted(order)
    assert settled <= {each.__module__ for each in things}
    assert len({each.__module__ for each in things}) == MOST_FILES


@pytest.mark.parametrize("name", FILES)
def test_the_files_that_it_names_exist(name: str) -> None:
    assert (Path(__file__).parents[2] / name).exists()


@pytest.mark.parametrize("package", PACKAGES)
def test_the_table_of_contributing_has_the_rooms_that_there_are(package: Path) -> None:
    """Names are compared; a room that nobody describes is one that nobody finds."""
    table = CONTRIBUTING.split("| place | holds |")[1].split("\n\n")[0]
    rows = [line for line in table.splitlines() if line.startswith(f"| `{package.name}/`")]
    assert len(rows) == 1
    named = set(re.findall(r"`(\w+)/`", rows[0])) - {package.name}
    assert named == {
        each.name for each in package.iterdir() if each.is_dir() and each.name != "__pycache__"
    }


@pytest.mark.parametrize("package", sorted({each.parent for each in PACKAGES}))
def test_each_package_begins_with_a_page_that_names_what_is_there(package: Path) -> None:
    page = (package / "README.md").read_text(encoding="utf-8")
    assert f"({package.name}/README.md)" in TEXT.replace("../", "")
    rooms = set(re.findall(r"`(?:earshot_\w+/)?([\w/]+(?:/|\.py))`", page))
    assert len(rooms) >= 8
    for room in rooms:
        places = (ROOT, *package.glob("earshot_*"))
        assert any((place / room).exists() for place in places), room
