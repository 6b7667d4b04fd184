"""What an installation with some of our extras brings."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

from earshot_protocol import distribution


def distributions(*extras: str) -> set[str]:
    """The closure of the requirements, by name."""
    found: set[str] = set()
    waiting = [(distribution.NAME, extra) for extra in ("", *extras)]
    while waiting:
        name, extra = waiting.pop()
        for line in metadata.requires(name) or ():
            requirement = Requirement(line)
            wanted = requirement.marker is None or requirement.marker.evaluate({"extra": extra})
            if wanted and requirement.name not in found:
                found.add(requirement.name)
                waiting += [(requirement.name, of) for of in ("", *requirement.extras)]
    return found


def link(folder: Path, names: set[str]) -> None:
    """Put these packages of the running environment into the folder."""
    for name in names:
        installed = metadata.distribution(name)
        tops = {file.parts[0] for file in installed.files or () if file.parts[0] != ".."}
        for top in tops - {"__pycache__"}:
            (folder / top).symlink_to(Path(str(installed.locate_file(top))))
