"""The phone in TypeScript: its own tests, each file in a Node of its own, and its types."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from support.node import CAPACITOR, PACKAGE, TESTS, node, type_errors

FILES = [
    # A phone killed at each of its writes takes as long as ten other files.
    pytest.param(
        path, marks=pytest.mark.slow if path.name == "deaths.test.ts" else (), id=path.name
    )
    for path in sorted(TESTS.glob("*.test.ts"))
]


def run_file(path: Path) -> tuple[int, dict[str, int], str]:
    """Return Node's status, its counts (`tests`, `pass`, `skipped`, …) and all that it said."""
    run = subprocess.run(  # noqa: S603 - Node of the wheel
        [node(), "--test-reporter=tap", path],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    counts = {name: int(count) for name, count in re.findall(r"^# (\w+) (\d+)$", run.stdout, re.M)}
    return run.returncode, counts, run.stdout + run.stderr


@pytest.mark.parametrize("path", FILES)
def test_its_tests_pass_in_node(path: Path) -> None:
    status, counts, said = run_file(path)
    assert status == 0, said
    assert counts["tests"] == counts["pass"] > 0, said  # none is skipped, none left for later


def test_a_test_that_fails_is_noticed(tmp_path: Path) -> None:
    broken = tmp_path / "broken.test.ts"
    broken.write_text('import { test } from "node:test";\ntest("no", () => { throw 1; });\n')
    status, counts, _ = run_file(broken)
    assert status != 0
    assert counts["fail"] == 1


@pytest.mark.parametrize("folder", [PACKAGE, TESTS, CAPACITOR], ids=["package", "tests", "example"])
def test_its_types_hold(folder: Path) -> None:
    """The package alone, with the types of the web and none of Node's; then others with both."""
    assert type_errors(folder) == ""


def test_a_wrong_type_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "wrong.ts").write_text("export const length: number = [1][0];\n")
    settings = {"extends": f"{PACKAGE}/tsconfig.json", "include": ["*.ts"]}
    (tmp_path / "tsconfig.json").write_text(json.dumps(settings))
    assert "TS2322" in type_errors(tmp_path)


def test_chance_that_is_no_secret_is_in_one_place() -> None:
    """`Math.random` can be guessed: it spreads phones that lost the same server, and nothing else.

    Secrets that are drawn, and from what, are watched by `secrets.test.ts`.
    """
    sources = [path for path in PACKAGE.rglob("*.ts") if "node_modules" not in path.parts]
    guessed = {
        path.relative_to(PACKAGE).as_posix(): path.read_text("utf-8").count("Math.random")
        for path in sources
        if "Math.random" in path.read_text("utf-8")
    }
    assert guessed == {"transport/http.ts": 1}
