"""The package `earshot-phone` as apps install it: scripts, their types, and the encoder.

    python -m support.phone_package out/earshot-phone

The sources name each other as Node and the browsers of our tests want it, which the compilers of
other apps take for mistakes. What is written here holds under anybody's settings.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from earshot_protocol.shipped_encoders import DEFAULT_ENCODER, packaged
from support.node import PACKAGE, ROOT, node, node_modules

_PATIENCE = 300.0


def write(folder: Path) -> None:
    """Write the package to a folder, which is emptied before.

    Raises:
        NoNodeError: There is no compiler, and it cannot be had.
        AssertionError: The compiler refuses the sources; it says why.
    """
    shutil.rmtree(folder, ignore_errors=True)
    about = json.loads((PACKAGE / "package.json").read_text(encoding="utf-8"))
    _compile([PACKAGE / source for source in about["exports"].values()], folder)
    encoder = f"{DEFAULT_ENCODER}.tflite"
    (folder / encoder).write_bytes(packaged(DEFAULT_ENCODER))
    (folder / "package.json").write_text(json.dumps(_described(about, encoder), indent=2) + "\n")
    for path in (PACKAGE / "README.md", ROOT / "LICENSE", ROOT / "NOTICE"):
        shutil.copy(path, folder)


def _compile(sources: list[Path], folder: Path) -> None:
    """Write the scripts and types of some sources, and of all that they import."""
    modules = node_modules()
    with tempfile.TemporaryDirectory() as temporary:
        settings = Path(temporary, "tsconfig.json")
        options = {
            "noEmit": False,
            "declaration": True,
            "rewriteRelativeImportExtensions": True,
            "rootDir": str(PACKAGE),
            "outDir": str(folder.resolve()),
        }
        settings.write_text(
            json.dumps(
                {
                    "extends": str(PACKAGE / "tsconfig.json"),
                    "compilerOptions": options,
                    "files": [str(source) for source in sources],
                    "include": [],
                }
            )
        )
        run = subprocess.run(  # noqa: S603 - the compiler of the lock
            [node(), modules / "typescript" / "bin" / "tsc", "--project", settings],
            capture_output=True,
            text=True,
            check=False,
            timeout=_PATIENCE,
        )
        assert run.returncode == 0, run.stdout + run.stderr


def _described(about: dict[str, Any], encoder: str) -> dict[str, Any]:
    """Return what npm has to know of the package."""
    exports: dict[str, Any] = {f"./{encoder}": f"./{encoder}"}
    for name, source in about["exports"].items():
        base = source.removesuffix(".ts")
        exports[name] = {"types": f"{base}.d.ts", "default": f"{base}.js"}
    kept = ("name", "version", "description", "license", "type", "sideEffects")
    return {name: about[name] for name in kept} | {"exports": exports}


if __name__ == "__main__":
    place = Path(sys.argv[1])
    write(place)
    sys.stdout.write(f"npm install {place}\n")
