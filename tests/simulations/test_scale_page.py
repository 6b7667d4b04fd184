"""docs/scale.md shows what was measured: its tables are those of the files that are kept."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from earshot_simulations.benchmarks import phase
from earshot_simulations.benchmarks.api.report import table

DOCS = Path(__file__).resolve().parents[2] / "docs"
TEXT = (DOCS / "scale.md").read_text(encoding="utf-8")


def phases() -> str:
    lines = (DOCS / "scale-measured.jsonl").read_text().splitlines()
    return phase.page([json.loads(line)["figures"] for line in lines])


def over_http() -> str:
    figures: dict[str, Any] = json.loads((DOCS / "scale-api.json").read_text())
    return table(figures)


@pytest.mark.parametrize(("name", "made"), [("phases", phases), ("api", over_http)])
def test_tables_are_those_of_what_was_measured(name: str, made: Any) -> None:
    (shown,) = re.findall(rf"<!-- {name} -->\n(.*?)\n<!-- end -->", TEXT, flags=re.DOTALL)
    assert shown == made(), f"docs/scale.md: put what the command prints between <!-- {name} -->"


def test_the_files_that_the_page_names_are_there() -> None:
    for name in re.findall(r"\]\(([^)#:]+)\)", TEXT):
        assert (DOCS / name).exists(), name
