"""What `earshot-phone` exports, read from the declarations that its package ships."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

from support.node import PACKAGE, node, node_modules

_PATIENCE = 120.0
"""Seconds for the compiler, which takes less than one."""


class Export(NamedTuple):
    """A name that a module exports.

    Attributes:
        name: The name.
        comment: Its comment, as Markdown; empty without one.
        declaration: Its declaration in TypeScript, with the comments of its members.
    """

    name: str
    comment: str
    declaration: str


class Module(NamedTuple):
    """A module that apps import.

    Attributes:
        name: Name by which an app imports it.
        comment: The comment with which its source begins, as Markdown.
        exports: What it exports, in order.
    """

    name: str
    comment: str
    exports: list[Export]


def modules() -> list[Module]:
    """Return every module of the package that has types, in the package's order.

    Raises:
        NoNodeError: There is no Node, or npm could not fetch the compiler.
    """
    exports = json.loads((PACKAGE / "package.json").read_text("utf-8"))["exports"]
    paths = {
        f"earshot-phone{name[1:]}": Path(entry["types"]).relative_to("dist")
        for name, entry in exports.items()
        if isinstance(entry, dict)
    }
    libraries = node_modules()
    with tempfile.TemporaryDirectory() as folder:
        _run(
            libraries / "typescript" / "bin" / "tsc",
            *("--project", PACKAGE / "tsconfig.package.json", "--typeRoots", libraries / "@types"),
            *("--emitDeclarationOnly", "--outDir", folder),
        )
        found = json.loads(
            _run(
                Path(__file__).with_suffix(".js"),
                libraries / "typescript-5.4",  # the newest one with an interface for programs
                *(Path(folder, path) for path in paths.values()),
            )
        )
    return [
        Module(name, _opening(PACKAGE / f"{str(path).removesuffix('.d.ts')}.ts"), each)
        for (name, path), each in zip(
            paths.items(), ([Export(**each) for each in module] for module in found), strict=True
        )
    ]


def _opening(source: Path) -> str:
    found = re.match(r"/\*\*(.*?)\*/", source.read_text("utf-8"), re.DOTALL)
    return re.sub(r"\n \* ?", "\n", found[1]).strip() if found else ""


def _run(*words: str | Path) -> str:
    run = subprocess.run(  # noqa: S603 - Node of the wheel
        [node(), *words],
        capture_output=True,
        encoding="utf-8",
        check=True,
        timeout=_PATIENCE,
    )
    return run.stdout
