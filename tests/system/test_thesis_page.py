"""docs/thesis.md and the list of papers lead where they say: steps, sections, commands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from earshot_client.command import SUB_COMMANDS
from earshot_studies.commands.reproduce import STUDIES

DOCS = Path(__file__).parents[2] / "docs"
THESIS = (DOCS / "thesis.md").read_text(encoding="utf-8")
PAPERS = (DOCS / "references.md").read_text(encoding="utf-8").split("## The secure sum")[0]
REPRODUCED = set(STUDIES)


def anchors(page: Path) -> set[str]:
    """Headings as the links to them are written: lower case, no punctuation, dashes for spaces."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("text", [THESIS, PAPERS], ids=["thesis.md", "references.md"])
def test_every_link_leads_somewhere(text: str) -> None:
    own = "thesis.md" if text is THESIS else "references.md"
    links = re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", text)
    assert links
    for name, anchor in links:
        page = DOCS / (name or own)
        assert page.exists(), name
        assert not anchor or anchor in anchors(page), f"{name}#{anchor}"


def test_every_step_of_algorithm_1_has_a_row() -> None:
    table = THESIS.split("## Step by step")[1].split("## Corrected")[0]
    steps = [re.match(r"\| ((?:\d+, )*\d+) ", row) for row in table.splitlines()]
    numbers = [int(one) for found in steps if found for one in found[1].split(", ")]
    assert numbers == list(range(1, 15))


def test_every_figure_of_the_thesis_that_can_be_made_is_in_the_table() -> None:
    table = THESIS.split("## Chapters 9 and 10")[1]
    made = {name for name in REPRODUCED if name and name.startswith("liebenow-")}
    assert set(re.findall(r"`earshot reproduce (liebenow-[\d.]+\w?)[` ]", table)) == made


@pytest.mark.parametrize("text", [THESIS, PAPERS], ids=["thesis.md", "references.md"])
def test_every_command_is_there(text: str) -> None:
    for command in re.findall(r"`earshot ([^`]+)`", text):
        first, *rest = command.split()
        assert first in SUB_COMMANDS, command
        if first == "reproduce":
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
