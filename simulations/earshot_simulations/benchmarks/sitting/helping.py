"""The helper of a measured sitting, in a separate process."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from earshot_simulations.benchmarks.failure import BenchmarkError
from earshot_simulations.workers import own_command

_LOG = "helper.log"


class RunningHelper(NamedTuple):
    """A running helper.

    Attributes:
        address: URL of the helper.
        key: Public key of the helper, in hexadecimal.
        data: Folder of the helper.
    """

    address: str
    key: str
    data: Path

    def allow(self, leader: str, least_reports: int) -> None:
        """Allow a leader whose sums have at least this many reports."""
        _earshot("allow", leader, "--least-reports", str(least_reports), "--data", str(self.data))


@contextmanager
def helping(data: Path) -> Iterator[RunningHelper]:
    """Run a helper in a new folder; it ends with the block.

    Raises:
        BenchmarkError: It does not start.
    """
    folder = data / "helper"
    key = _earshot("init", "--data", str(folder)).strip()
    with (data / _LOG).open("wb") as log:
        process = subprocess.Popen(  # noqa: S603 - our own command
            [
                *own_command("helper", "serve", "--data", str(folder)),
                *("--port", "0", "--workers", "1"),
            ],
            stdout=subprocess.PIPE,
            stderr=log,
            encoding="utf-8",
            errors="replace",
        )
    try:
        found = re.search(r"http://\S+", process.stdout.readline() if process.stdout else "")
        if found is None:
            last = (data / _LOG).read_text(encoding="utf-8", errors="replace")[-2000:]
            raise BenchmarkError(f"the helper does not start: {last}")
        yield RunningHelper(found[0], key, folder)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        if process.stdout:
            process.stdout.close()


def _earshot(*words: str) -> str:
    """Run one of the helper's commands, and return its output."""
    run = subprocess.run(  # noqa: S603 - our own command
        own_command("helper", *words),
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    if run.returncode:
        raise BenchmarkError(f"earshot helper {words[0]} fails: {run.stderr.strip()}")
    return run.stdout
