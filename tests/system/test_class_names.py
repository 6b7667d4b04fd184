"""A public class name has one meaning in all packages."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("protocol", "client", "server", "models", "simulations")


def test_a_class_name_means_one_thing() -> None:
    """But for a protocol beside its implementation, and an estimator that runs its namesake."""
    places: dict[str, list[Path]] = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.parse(path.read_text("utf-8")).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    places.setdefault(node.name, []).append(path)
    twice = {name: paths for name, paths in places.items() if len(paths) > 1}
    implemented = {
        name
        for name, paths in twice.items()
        if len({path.parent for path in paths}) == 1 and len(paths) == 2
        and "interface.py" in {path.name for path in paths}
    }  # fmt: skip
    estimators = {name for name, paths in twice.items() if "estimators.py" in paths[-1].name}
    assert estimators == {"DPLloyd", "Optics", "SphericalDPLloyd"}
    assert twice.keys() == implemented | estimators
