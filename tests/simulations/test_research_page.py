"""docs/research.md is executed from top to bottom, and prints what stands there."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "research.md"
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)


NUMBER = re.compile(r"\d+(?:\.\d+)?")


def parted(text: str) -> tuple[str, list[float]]:
    """A text without its numbers, and these."""
    return NUMBER.sub("#", text), [float(number) for number in NUMBER.findall(text)]


def executed(folder: Path) -> Iterator[tuple[str, str]]:
    """What each block that is followed by an output says, and what it printed.

    Blocks of Python share their names, as in a notebook.
    """
    names: dict[str, Any] = {}
    for place, (kind, text) in enumerate(BLOCKS):
        printed = io.StringIO()
        if kind == "python":
            with contextlib.redirect_stdout(printed):
                exec(compile(text, f"block {place}", "exec"), names)  # noqa: S102 - our own page
        elif kind == "sh":
            for line in text.splitlines():
                command, *words = shlex.split(line)
                assert command == "earshot"
                run = subprocess.run(  # noqa: S603 - our own page
                    [sys.executable, "-m", "earshot_client", *words],
                    cwd=folder,
                    capture_output=True,
                    text=True,
                    check=False,
                )
                assert run.returncode == 0, run.stderr
                printed.write(run.stdout)
        elif kind == "toml":
            (folder / "sweep.toml").write_text(text, encoding="utf-8")
        if place + 1 < len(BLOCKS) and BLOCKS[place + 1][0] == "text":
            yield BLOCKS[place + 1][1], printed.getvalue()


@pytest.mark.slow
def test_every_block_of_the_page_runs_and_prints_what_stands_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    outputs = list(executed(tmp_path))
    assert len(outputs) == 4
    for said, printed in outputs:
        lines = [line for line in printed.splitlines() if not line.startswith("peak memory")]
        words, numbers = parted("\n".join(lines) + "\n")
        expected_words, expected_numbers = parted(said)
        assert words == expected_words
        # Another processor may round the last bits otherwise, and a recording change its cell.
        assert numbers == pytest.approx(expected_numbers, abs=0.01)
    written = {path.name for path in (tmp_path / "out" / "sweep").iterdir()}
    assert written == {"phases.jsonl", "table.csv", "table.parquet", "sweep.html"}
