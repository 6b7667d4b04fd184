"""The README and the pages it leads to: programs run, commands exist, links lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.documented import (
    blocks,
    commands,
    loaded,
    mistake,
    options,
    prose,
    section,
    subcommands,
)

ROOT = Path(__file__).parents[2]
PAGES = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/*.md"))]
}
README, SIMULATING = PAGES["README.md"], PAGES["docs/simulating.md"]
ELSEWHERE = {
    "docs/campaign-simulation.md": 1,
    "docs/embedding.md": 2,
    "docs/estimators.md": 3,
    "docs/research.md": 5,
    "docs/simulating.md": 5,
}
"""Programs that test_campaign_simulation, _embedding_guide, _estimators, _research_page and
_library run."""


def anchors(page: str) -> set[str]:
    """By which fragments a page's headings are linked, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings}


def test_every_program_of_a_page_is_run_by_a_test() -> None:
    found = {name: len(each) for name, page in PAGES.items() if (each := blocks(page, "python"))}
    here = {"README.md": 1, "docs/architecture.md": 1, "docs/embedding.md": 1}
    assert found == {
        name: here.get(name, 0) + ELSEWHERE.get(name, 0) for name in sorted({*here, *ELSEWHERE})
    }


@pytest.mark.parametrize(
    ("page", "printed"),
    [
        ("README.md", "(Recording(number=1, "),
        ("docs/embedding.md", "[]"),
        ("docs/architecture.md", "local centroids waits for 500"),
    ],
)
def test_the_first_program_of_a_page_runs(page: str, printed: str, tmp_path: Path) -> None:
    """And once more where it has run: what it made is found again."""
    example = [sys.executable, "-c", blocks(PAGES[page], "python")[0]]
    for _ in range(2):
        run = subprocess.run(  # noqa: S603
            example, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert run.stderr == ""
        assert run.returncode == 0
        assert printed in run.stdout


@pytest.mark.parametrize("page", PAGES)
def test_every_command_of_a_page_exists_with_its_options(page: str) -> None:
    wrong = {" ".join(words): why for words in commands(PAGES[page]) if (why := mistake(words))}
    assert wrong == {}


def test_the_commands_of_the_pages_are_found() -> None:
    """Or the test above would say nothing."""
    shown = [words[:2] for words in commands(README)]
    assert ["sweep", "sweep.toml"] in shown
    assert ["serve", "--data"] in shown  # by another path
    assert ["audit"] in shown  # between backticks
    fifty = commands(section(PAGES["docs/operations.md"], "Fifty phones on one machine"))
    assert [words[0] for words in fifty].count("phone") == 2  # over several lines
    assert ["invite", "--data", "server", "--uses", "50"] in fifty  # within `$(…)`


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("simulate --phones 5 --rounds 3", "earshot simulate has no option --rounds"),
        ("phase finish --phones 5", "earshot phase has no sub-command and no argument finish"),
        ("phase start --per-recording", "earshot phase start has no option --per-recording"),
        ("reproduce liebenow-9.7", "earshot reproduce has no sub-command and no argument"),
        ("simulate --json extra", "earshot simulate has no sub-command and no argument extra"),
        ("listen", "earshot has no sub-command listen"),
    ],
)
def test_a_command_that_does_not_exist_is_noticed(words: str, why: str) -> None:
    assert (mistake(words.split()) or "").startswith(why)


def test_the_page_on_simulating_has_every_option_and_no_other() -> None:
    rows = re.findall(r"^\| (`--[^|]*) \|", section(SIMULATING, "Options"), re.MULTILINE)
    shown = [name for row in rows for name in re.findall(r"`(--[a-z-]+)", row)]
    assert sorted(shown) == sorted({name.partition(".")[0] for name in options(loaded("simulate"))})


def test_every_figure_that_the_readme_names_can_be_reproduced() -> None:
    rows = re.findall(r"^\|.*\|.*\| (`.*) \|$", section(README, "Five papers"), re.MULTILINE)
    figures = [figure for row in rows for figure in re.findall(r"`([\w.-]+)`", row)]
    assert len(rows) == 5
    assert len(figures) >= 11
    assert [name for name in figures if name not in subcommands(loaded("reproduce"))] == []


@pytest.mark.parametrize("page", PAGES)
def test_every_link_of_a_page_leads_somewhere(page: str) -> None:
    folder = (ROOT / page).parent
    for link in re.findall(r"\]\(([^)\s]+)\)", PAGES[page]):
        name, _, fragment = link.partition("#")
        if "://" in link:
            continue
        target = (folder / name).resolve() if name else ROOT / page
        assert target.exists(), link
        if fragment:
            assert fragment in anchors(target.read_text(encoding="utf-8")), link
