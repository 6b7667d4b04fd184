"""docs/architecture.md and docs/thesis.md name code that is there; walks go as it is called."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "architecture.md").read_text(encoding="utf-8")
THESIS = (DOCS / "thesis.md").read_text(encoding="utf-8")
NAMES = sorted(set(re.findall(r"`(earshot_[a-z_]+(?:\.\w+)+)`", TEXT + THESIS)))
FILES = sorted(set(re.findall(r"`((?:tests|docs|protocol|client|server)/[\w/.]+)`", TEXT)))
WALKS = re.findall(r"^\*\*(One [\w ]+)\*\*", TEXT, re.MULTILINE)


def test_it_walks_one_recording_one_ballot_one_http_answer_and_one_run() -> None:
    assert WALKS == ["One recording", "One ballot", "One HTTP answer", "One simulated run"]
    for walk in TEXT.split("## Four walks")[1].split("## Where")[0].split("**One ")[1:]:
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
        assert depth == len(path) or callable(thing), name
        return
    pytest.fail(f"{name} is not there")


@pytest.mark.parametrize("name", FILES)
def test_the_files_that_it_names_exist(name: str) -> None:
    assert (Path(__file__).parents[2] / name).exists()
