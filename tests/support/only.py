"""`earshot` where nothing is found but what some extras bring, whatever is installed here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import pytest

from earshot_protocol import distribution
from support.closure import distributions, named

# Each process of Python imports it when it starts, those that a command starts too.
SITE = """
import sys
from importlib.metadata import MetadataPathFinder

HIDDEN, ALLOWED, FINDERS = {hidden!r}, {allowed!r}, tuple(sys.meta_path)


class Only:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in HIDDEN:
            return None
        found = (finder.find_spec(name, path, target) for finder in FINDERS)
        return next((spec for spec in found if spec is not None), None)

    @staticmethod
    def find_distributions(context=MetadataPathFinder.Context()):
        found = MetadataPathFinder.find_distributions(context)
        return (each for each in found if each.name.lower().replace("_", "-") in ALLOWED)


sys.meta_path[:] = [Only]
"""
CALLS = """
import contextlib, io, json, sys
from earshot_client.command import main

answers = []
for words in json.loads(sys.argv[1]):
    sys.argv, printed, said = ["earshot", *words], io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(said):
        try:
            status = main()
        except SystemExit as ended:
            status = ended.code
    answers.append([status or 0, printed.getvalue(), said.getvalue()])
print(json.dumps(answers))
"""


class Answer(NamedTuple):
    """What a call of the command ends with: its status, standard output and standard error."""

    status: int
    printed: str
    said: str


def site(folder: Path, extras: Iterable[str]) -> dict[str, str]:
    """Variables of an environment, made in the folder, in which Python finds nothing else."""
    allowed = named(distributions(*extras)) | {distribution.NAME}
    hidden = {top for top, owners in _owners().items() if not named(owners) & allowed}
    (folder / "sitecustomize.py").write_text(SITE.format(hidden=hidden, allowed=allowed))
    return {"PYTHONPATH": str(folder), "HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache")}


def only(folder: Path, extras: Iterable[str], *calls: Sequence[str]) -> list[Answer]:
    """Call the command with each of these words, in one process with these extras alone."""
    done = subprocess.run(  # noqa: S603 - the program above
        [sys.executable, "-c", CALLS, json.dumps(calls)],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**os.environ, **site(folder, extras), "COLUMNS": "80"},
    )
    assert done.returncode == 0, done.stderr
    return [Answer(*answer) for answer in json.loads(done.stdout)]


def forget(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process have not imported a library yet, nor find anything that is installed."""
    for loaded in [name for name in sys.modules if name.partition(".")[0] == module]:
        monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setattr(sys, "path", [])


@cache
def _owners() -> dict[str, list[str]]:
    return dict(metadata.packages_distributions())
