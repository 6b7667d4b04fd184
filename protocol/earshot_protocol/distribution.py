"""What we are installed as: the name `earshot` in the public index is somebody else's."""

from __future__ import annotations

NAME = "earshot-sensing"


def version() -> str:
    """The version that is installed."""
    from importlib import metadata  # slow to load, and apps do not ask

    return metadata.version(NAME)


def installation(extra: str) -> str:
    """The command that brings one of our extras, as `pyproject.toml` names them."""
    return f"pip install '{NAME}[{extra}]'"
