"""For `make lowest`: is each bound of pyproject.toml the version that is installed here?

One that no wheel, or no other package, lets anybody install is not the lowest that works.
"""

from __future__ import annotations

import sys
import sysconfig
import tomllib
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

PROJECT = Path(__file__).parents[2] / "pyproject.toml"


def main() -> None:
    """Exit with the bounds of which another version is installed."""
    project = tomllib.loads(PROJECT.read_text("utf-8"))["project"]
    lines = set(project["dependencies"]).union(*project["optional-dependencies"].values())
    sys.exit("\n".join(too_low(lines, Path(sysconfig.get_path("purelib")))))


def too_low(requirements: Iterable[str], packages: Path) -> list[str]:
    """Return the requirements of which a folder has another version than the bound.

    3.9 is met by any 3.9.x.
    """
    wrong = []
    for requirement in map(Requirement, sorted(requirements)):
        (found,) = metadata.distributions(name=requirement.name, path=[str(packages)])
        for bound in requirement.specifier:
            lowest = Version(bound.version).release
            if Version(found.version).release[: len(lowest)] != lowest:
                wrong.append(f"{requirement}: the lowest that can be installed is {found.version}")
    return wrong


if __name__ == "__main__":
    main()
