"""Published figures of the reproduced papers."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def printed_figures(package: str) -> dict[str, Any]:
    """Return the tables of `printed.toml` in a package."""
    return tomllib.loads(files(package).joinpath("printed.toml").read_text(encoding="utf-8"))
