"""`earshot` as its entry point runs it, without a second for another interpreter."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from collections.abc import Callable
from unittest import mock

import pytest

from earshot_client.command import main

Earshot = Callable[..., tuple[int, str, str]]
"""Exit status, standard output and standard error of `earshot …`."""


def earshot(*words: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """What the command prints, and the status that it ends with; whatever it imports stays.

    Args:
        words: what stands behind `earshot` on the command line.
        environment: variables that it finds besides ours.
    """
    arguments = [str(word) for word in words]
    printed, said = io.StringIO(), io.StringIO()
    with (
        mock.patch.object(sys, "argv", ["earshot", *arguments]),
        mock.patch.dict(os.environ, environment),
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(said),
        pytest.raises(SystemExit) as ended,
    ):
        main()
    code = ended.value.code
    if isinstance(code, str):  # as an interpreter ends
        said.write(f"{code}\n")
        code = 1
    return subprocess.CompletedProcess(arguments, code or 0, printed.getvalue(), said.getvalue())


def ended(monkeypatch: pytest.MonkeyPatch, *words: object) -> int:
    """The exit status of a command whose output goes where the test's goes."""
    monkeypatch.setattr(sys, "argv", ["earshot", *map(str, words)])
    with pytest.raises(SystemExit) as exited:
        main()
    return int(exited.value.code or 0)


def dry_start(*options: str, status: int = 0) -> str:
    """Return what `earshot phase start --dry-run --verbose` prints, or why it refuses."""
    words = ("phase", "start", "--phones", "1000", "--dry-run", "--verbose")
    run = earshot(*words, *options, EARSHOT_SERVER="http://127.0.0.1:9")
    assert run.returncode == status, run.stderr
    return run.stderr if status else run.stdout
