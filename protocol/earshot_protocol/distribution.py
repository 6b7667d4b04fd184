"""Name and version of the installed package; `earshot` in the public index is another project."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from earshot_protocol.errors import LocalError

NAME = "earshot-sensing"

_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+).*;.*\bextra\s*==\s*[\"'](?P<extra>[\w-]+)[\"']")
"""Requirement of an extra in a wheel's metadata, in which our own extras are expanded."""


def version() -> str:
    """Return the installed version."""
    from importlib import metadata  # slow to load, and apps do not need it

    return metadata.version(NAME)


def installation(*extras: str) -> str:
    """Return the command that installs these extras, named as in `pyproject.toml`."""
    return f"pip install '{NAME}[{','.join(extras)}]'"


class MissingExtraError(LocalError):
    """Packages of an extra are not installed; the message has the command that installs them."""


def unusable(what: str, package: str, module: str, extra: str, error: ImportError) -> str:
    """Return why a library of an extra cannot be imported: it is not installed, or it is broken.

    Args:
        what: Name of things that need it, which begins the message.
        package: Name under which the library is installed.
        module: Name of its outermost module.
        extra: Extra of Earshot that installs it.
        error: Error of the import.
    """
    if isinstance(error, ModuleNotFoundError) and error.name == module:
        return f"{what} need {package}, not installed here: {installation(extra)}"
    return f"{what} need {package}, which is installed here and cannot be loaded: {error}"


def require(what: str, extras: Sequence[str]) -> None:
    """Raise if packages of these extras are missing.

    Args:
        what: Name of the program that needs them, which begins the message.
        extras: All extras that it needs.

    Raises:
        MissingExtraError: A package of these extras is missing.
    """
    lacking = missing(extras)
    if lacking:
        raise MissingExtraError(
            f"{what} needs {', '.join(lacking)}, not installed here: {installation(*extras)}"
        )


def missing(extras: Collection[str]) -> list[str]:
    """Return the packages of these extras that are not installed.

    Their own dependencies are not checked. If Earshot itself is not installed, as in a program with
    a vendored copy, the list is empty.
    """
    from importlib import metadata

    try:
        requirements = metadata.requires(NAME) or []
    except metadata.PackageNotFoundError:
        return []
    wanted = [found for text in requirements if (found := _REQUIREMENT.match(text)) is not None]
    names = dict.fromkeys(each["name"] for each in wanted if each["extra"] in extras)
    return [name for name in names if not _installed(name)]


def _installed(name: str) -> bool:
    from importlib import metadata

    try:
        metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    return True
