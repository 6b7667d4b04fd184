"""A plugin of pytest that keeps how long each test took, and what did not pass."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from pathlib import Path

import pytest

_seconds: dict[str, float] = defaultdict(float)
_failed: set[str] = set()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _seconds[report.nodeid] += report.duration
    if report.failed:
        _failed.add(report.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput"):
        kept = {"seconds": _seconds, "failed": sorted(_failed)}
        Path(os.environ["EARSHOT_TIMES"]).write_text(json.dumps(kept))
