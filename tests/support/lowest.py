"""For `make lowest`: is each bound of pyproject.toml the version that is installed here?

One that no wheel, or no other package, lets anybody install is not the lowest that works.
"""

from __future__ import annotations

import sys
import tomllib
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

PROJECT = Path(__file__).parents[2] / "pyproject.toml"


def main() -> None:
    """Exit with the bounds of which another version is installed; 3.9 is met by any 3.9.x."""
    project = tomllib.loads(PROJECT.read_text("utf-8"))["project"]
    lines = set(project["dependencies"]).union(*project["optional-dependencies"].values())
    wrong = []
    for requirement in map(Requirement, sorted(lines)):
        for bound in requirement.specifier:
            lowest = Version(bound.version).release
            here = metadata.version(requirement.name)
            if Version(here).release[: len(lowest)] != lowest:
                wrong.append(f"{requirement}: the lowest that can be installed is {here}")
    sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
