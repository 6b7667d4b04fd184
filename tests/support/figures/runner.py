"""Runs one command of `earshot` with draws from a fixed stream and constants replaced.

A program of its own, which imports nothing of the tests: it must run with the code of any commit.
"""

from __future__ import annotations

import dataclasses  # noqa: F401 - for the expressions
import hashlib
import importlib
import json
import os
import random
import sys
from typing import Any


class Stream:
    """Bytes of SHAKE-256 instead of the operating system's."""

    def __init__(self) -> None:
        """Begin the stream."""
        self.drawn = 0

    def __call__(self, size: int) -> bytes:
        """Return the next bytes; those of another process are others."""
        self.drawn += 1
        return hashlib.shake_256(b"%d" % self.drawn).digest(size)


def replace(names: str, value: Any) -> None:
    """Set an attribute by the first of its dotted names that exists; a bar stands between them.

    A value that is a function makes the new value of the old one.
    """
    for dotted in names.split("|"):
        owner, name = found(dotted)
        if hasattr(owner, name):
            setattr(owner, name, value(getattr(owner, name)) if callable(value) else value)
            return
    raise AttributeError(f"{names}: there is no such constant")


def found(dotted: str) -> tuple[Any, str]:
    """Return what has the attribute of a dotted name, and the attribute's own name."""
    parts = dotted.split(".")
    for length in range(len(parts) - 1, 0, -1):
        try:
            owner: Any = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:-1]:
            owner = getattr(owner, part, None)
        return owner, parts[-1]
    return None, parts[-1]


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    os.urandom = random._urandom = Stream()  # type: ignore[attr-defined]
    for name, expression in given["small"].items():
        replace(name, eval(expression))  # noqa: S307 - from our own table
    sys.argv = ["earshot", *given["words"]]
    from earshot_client.command import main

    main()
