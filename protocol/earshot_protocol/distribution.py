"""Name and version of the installed package; `earshot` in the public index is another project."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection, Sequence

from earshot_protocol.errors import LocalError

NAME = "earshot-sensing"
"""Everything: the phone, the server, models and simulations."""
PHONE = "earshot-phone"
"""Protocol and client alone, for apps. Both own the same files, so an environment has one."""

_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+).*;.*\bextra\s*==\s*[\"'](?P<extra>[\w-]+)[\"']")
"""Requirement of an extra in a wheel's metadata, in which our own extras are expanded."""


class MissingExtraError(LocalError, ImportError):
    """Packages of an extra are not installed; the message has the command that installs them."""


class MixedVersionsError(LocalError):
    """Two versions of our files are installed over each other."""


def name() -> str:
    """Return the name of the installed distribution of ours, or `NAME` if there is none.

    Raises:
        MixedVersionsError: Both are installed, in different versions.
    """
    return next(iter(_installed()), NAME)


def version() -> str:
    """Return the installed version.

    Raises:
        importlib.metadata.PackageNotFoundError: A program carries its own copy of our files.
        MixedVersionsError: Both distributions are installed, in different versions.
    """
    from importlib import metadata  # slow to load, and apps do not ask

    return metadata.version(name())


def installation(*extras: str) -> str:
    """Return the command that installs these extras of the installed distribution of ours."""
    return f"pip install '{name()}[{','.join(extras)}]'"


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
        requirements = metadata.requires(name()) or []
    except metadata.PackageNotFoundError:
        return []
    wanted = [found for text in requirements if (found := _REQUIREMENT.match(text)) is not None]
    needed = dict.fromkeys(each["name"] for each in wanted if each["extra"] in extras)
    return [each for each in needed if not _versions(each)]


def _installed() -> dict[str, str]:
    """Return the installed distributions of ours, the whole first, with their versions."""
    found = _versions(NAME, PHONE)
    if len(set(found.values())) > 1:
        raise MixedVersionsError(
            f"{' and '.join(f'{each} {version}' for each, version in found.items())} are installed "
            f"over each other: pip uninstall {' '.join(found)}, then install one of them"
        )
    return found


def _versions(*names: str) -> dict[str, str]:
    """Return the version of each of these distributions that is installed."""
    from importlib import metadata

    found = {}
    for each in names:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[each] = metadata.version(each)
    return found
