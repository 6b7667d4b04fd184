"""The README's code does what it says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


def test_readme_has_an_example_for_apps_and_one_for_operators() -> None:
    assert len(EXAMPLES) == 2


@pytest.mark.parametrize(
    ("example", "printed"),
    list(zip(EXAMPLES, ["[]", "local centroids waits for 500"], strict=True)),
)
def test_an_example_of_the_readme_runs(example: str, printed: str, tmp_path: Path) -> None:
    run = subprocess.run(  # noqa: S603
        [sys.executable, "-c", example], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert run.stderr == ""
    assert run.returncode == 0
    assert printed in run.stdout


def test_every_file_that_the_readme_names_is_there() -> None:
    for name in [*re.findall(r"\]\(([^)#:]+)\)", README), "CONTRIBUTING.md", "docs/decisions"]:
        assert (ROOT / name).exists(), name
