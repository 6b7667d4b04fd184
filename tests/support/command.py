"""`earshot` as its entry point runs it, without a second for another interpreter."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
import tempfile
import traceback
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


def earshot_apart(*words: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """The same in a fork of this process, for commands that do not leave theirs as it was."""
    arguments = [str(word) for word in words]
    with tempfile.TemporaryFile("w+") as printed, tempfile.TemporaryFile("w+") as said:
        child = os.fork()
        if child == 0:
            os.dup2(printed.fileno(), 1)
            os.dup2(said.fileno(), 2)
            os.environ.update(environment)
            sys.argv = ["earshot", *arguments]
            os._exit(_run_to_its_end())
        _, status = os.waitpid(child, 0)
        for stream in (printed, said):
            stream.seek(0)
        code = os.waitstatus_to_exitcode(status)
        return subprocess.CompletedProcess(arguments, code, printed.read(), said.read())


def _run_to_its_end() -> int:
    """Run the command as an interpreter of its own would, and return the status."""
    status = 1
    with open(1, "w", closefd=False) as sys.stdout, open(2, "w", closefd=False) as sys.stderr:
        try:
            main()
        except SystemExit as ended:
            status = ended.code if isinstance(ended.code, int) else 1
        except BaseException:  # a fork must not go on where its parent does
            traceback.print_exc()
    return status


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
