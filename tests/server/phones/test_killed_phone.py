"""A phone's process is killed between any two writes of its file, in every step of every kind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from support import killed_phone
from support.killed_phone import Seen


def killed(kind: str, folder: Path, fault: str = "") -> Seen:
    run = subprocess.run(  # noqa: S603
        [sys.executable, "-m", "support.killed_phone", kind, str(folder), fault],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        check=False,
        timeout=600,
    )
    assert run.returncode == 0, run.stderr.decode()
    return msgspec.json.decode(run.stdout, type=Seen)


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("learning", marks=pytest.mark.slow),
        "statistics",
        pytest.param("discovery", marks=pytest.mark.slow),
    ],
)
def test_nothing_leaves_unpaid_and_nothing_is_paid_or_released_twice(
    kind: str, tmp_path: Path
) -> None:
    seen = killed(kind, tmp_path)
    assert seen.wrong == []
    assert seen.ledger == seen.planned
    steps = killed_phone.KINDS[kind].plan().steps
    releasing = [step for step in steps if step.releases]
    assert seen.kills >= len(steps) * (killed_phone.INSTANTS + 6)
    # There were kills on both sides of what makes a release and its entry one.
    assert seen.unpaid >= 5 * len(releasing)
    assert seen.paid >= len(releasing)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "found"),
    [
        ("late", "a release was not paid for"),
        ("forgetful", "it cannot go on: a secure sum begins only once"),
    ],
)
def test_a_phone_that_writes_in_another_order_is_caught(
    fault: str, found: str, tmp_path: Path
) -> None:
    seen = killed("statistics", tmp_path, fault)
    assert any(each.startswith(found) for each in seen.wrong), seen.wrong
