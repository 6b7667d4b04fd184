"""Name and version of the installed package; `earshot` in the public index is another project."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from earshot_protocol.errors import LocalError

NAME = "earshot-sensing"

_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+).*;.*\bextra\s*==\s*[\"'](?P<extra>[\w-]+)[\"']")
"""Requirement of an extra as a wheel's metadata has it, where extras of ours stand expanded."""


def version() -> str:
    """Return the installed version."""
    from importlib import metadata  # slow to load, and apps do not ask

    return metadata.version(NAME)


def installation(*extras: str) -> str:
    """Return the command that installs these of our extras, named as in `pyproject.toml`."""
    return f"pip install '{NAME}[{','.join(extras)}]'"


class MissingExtraError(LocalError):
    """Packages of an extra are not installed; the message has the command that installs them."""


def unusable(what: str, package: str, module: str, extra: str, error: ImportError) -> str:
    """Return why a library of an extra cannot be imported: it is not installed, or it is broken.

    Args:
        what: Name of things that need it, which begins the message.
        package: Name under which the library is installed.
        module: Name of its outermost module.
        extra: Extra of ours that brings it.
        error: Error of the import.
    """
    if isinstance(error, ModuleNotFoundError) and error.name == module:
        return f"{what} need {package}, not installed here: {installation(extra)}"
    return f"{what} need {package}, which is installed here and cannot be loaded: {error}"


def require(what: str, extras: Sequence[str]) -> None:
    """Raise if packages of these extras are missing.

    Args:
        what: Name of what would start, which begins the message.
        extras: All extras that it needs.

    Raises:
        MissingExtraError: A package of theirs is missing.
    """
    lacking = missing(extras)
    if lacking:
        raise MissingExtraError(
            f"{what} needs {', '.join(lacking)}, not installed here: {installation(*extras)}"
        )


def missing(extras: Collection[str]) -> list[str]:
    """Return the packages that these extras bring and that are not installed.

    The further packages that those need are left to the installer. Without an installation of ours,
    as in a program that carries its own copy, nothing is known and so nothing is missing.
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
