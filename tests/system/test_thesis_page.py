"""Pages of the papers lead where they say: steps, sections, commands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from earshot_client.command import SUB_COMMANDS
from earshot_studies.commands.reproduce import STUDIES

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
STUDIED = ROOT / "simulations/earshot_studies"
THESIS = (DOCS / "thesis.md").read_text(encoding="utf-8")
PAPERS = (DOCS / "references.md").read_text(encoding="utf-8").split("## The secure sum")[0]
REPRODUCED = set(STUDIES)
NAMES = ("thesis.md", "references.md", "private-votes.md", "auditing.md")


def anchors(page: Path) -> set[str]:
    """Headings as the links to them are written: lower case, no punctuation, dashes for spaces."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


PAGES = [*(DOCS / name for name in NAMES), *sorted(STUDIED.glob("*/README.md"))]


@pytest.mark.parametrize("own", PAGES, ids=lambda page: f"{page.parent.name}/{page.name}")
def test_every_link_leads_somewhere(own: Path) -> None:
    links = re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", own.read_text("utf-8"))
    assert links
    for name, anchor in links:
        page = own.parent / name if name else own
        assert page.exists(), name
        assert not anchor or anchor in anchors(page), f"{name}#{anchor}"


def test_every_step_of_algorithm_1_has_a_row() -> None:
    table = THESIS.split("## Step by step")[1].split("## Corrected")[0]
    steps = [re.match(r"\| ((?:\d+, )*\d+) ", row) for row in table.splitlines()]
    numbers = [int(one) for found in steps if found for one in found[1].split(", ")]
    assert numbers == list(range(1, 15))


def test_every_figure_of_the_thesis_that_can_be_made_is_in_the_table() -> None:
    table = (STUDIED / "liebenow/README.md").read_text("utf-8")
    made = {name for name in REPRODUCED if name and name.startswith("liebenow-")}
    assert set(re.findall(r"`earshot reproduce (liebenow-[\d.]+\w?)[` ]", table)) == made


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.name}")
def test_every_command_is_there(page: Path) -> None:
    for command in re.findall(r"`earshot ([^`]+)`", page.read_text("utf-8")):
        first, *rest = command.split()
        assert first in SUB_COMMANDS, command
        if first == "reproduce" and rest:
            assert rest[0] in REPRODUCED, command


def test_every_paper_has_commands_that_are_there() -> None:
    rows = re.findall(r"^\| (?!paper|-).* \| (.*) \|$", PAPERS, re.MULTILINE)
    assert len(rows) == 5
    for row in rows:
        commands = [
            each.removeprefix("earshot reproduce ") for each in re.findall("`([^`]+)`", row)
        ]
        assert commands
        assert set(commands) <= REPRODUCED, row


def test_every_study_of_a_paper_has_a_page_that_names_its_commands() -> None:
    folders = [path.parent for path in STUDIED.glob("*/command.py")]
    assert {path.name for path in folders} == {page.parent.name for page in PAGES[len(NAMES) :]}
    said = " ".join(page.read_text("utf-8") for page in PAGES)
    assert [name for name in REPRODUCED if name and name not in said] == []
