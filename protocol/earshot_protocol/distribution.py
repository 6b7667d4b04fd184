"""Name and version of the installed package; `earshot` in the public index is another project."""

from __future__ import annotations

NAME = "earshot-sensing"


def version() -> str:
    """Return the installed version."""
    from importlib import metadata  # slow to load, and apps do not ask

    return metadata.version(NAME)


def installation(extra: str) -> str:
    """Return the command that installs one of our extras, named as in `pyproject.toml`."""
    return f"pip install '{NAME}[{extra}]'"
