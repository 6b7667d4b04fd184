"""What an installation with some of our extras brings."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from earshot_protocol import distribution


def distributions(*extras: str) -> set[str]:
    """The closure of the requirements, by name; what is not installed here ends it."""
    found: set[str] = set()
    waiting = [(distribution.NAME, extra) for extra in ("", *extras)]
    while waiting:
        name, extra = waiting.pop()
        for line in metadata.requires(name) or ():
            requirement = Requirement(line)
            wanted = requirement.marker is None or requirement.marker.evaluate({"extra": extra})
            if wanted and requirement.name not in found:
                found.add(requirement.name)
                if installed(requirement.name):
                    waiting += [(requirement.name, of) for of in ("", *requirement.extras)]
    return found


def named(names: Iterable[str]) -> set[str]:
    """The names as indexes and locks write them."""
    return {canonicalize_name(name) for name in names}


def installed(name: str) -> bool:
    """Whether it is here: of what is not, nothing more is known."""
    return any(metadata.distributions(name=name))


def link(folder: Path, names: set[str]) -> None:
    """Put these packages of the running environment into the folder."""
    for name in names:
        installed = metadata.distribution(name)
        tops = {file.parts[0] for file in installed.files or () if file.parts[0] != ".."}
        for top in tops - {"__pycache__"}:
            (folder / top).symlink_to(Path(str(installed.locate_file(top))))
