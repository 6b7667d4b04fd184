"""docs/architecture.md and docs/thesis.md name code that is there; walks go as it is called."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

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
WALKS = re.findall(r"^\*\*(One [\w ]+)\*\*", TEXT, re.MULTILINE)


def test_it_walks_through_the_whole_house() -> None:
    walks = (
        "recording, ballot, sum by two operators, HTTP answer, simulated run, private label, study"
    )
    assert [f"One {walk}" for walk in walks.split(", ")] == WALKS
    for walk in TEXT.split("## Seven walks")[1].split("## How a step")[0].split("**One ")[1:]:
        assert len(re.findall(r"`earshot_[\w.]+`", walk)) >= 7


@pytest.mark.parametrize("name", NAMES)
def test_what_it_names_exists(name: str) -> None:
    path = name.split(".")
    for depth in range(len(path), 0, -1):
        try:
            thing = importlib.import_module(".".join(path[:depth]))
        except ModuleNotFoundError:
            continue
        for attribute in path[depth:]:
            thing = getattr(thing, attribute)
        assert depth == len(path) or callable(thing) or path[-1].isupper(), name
        return
    pytest.fail(f"{name} is not there")


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
