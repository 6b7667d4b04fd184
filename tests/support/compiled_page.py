"""The page of a phone as browsers get it: compiled without comments, for whoever ships it.

    python -m support.compiled_page

writes it to where the server's package has it, so that an installed Earshot needs no compiler. The
same sources and lock make the same bytes on every machine; a test compares them.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from support.node import PACKAGE, ROOT, compiler, node

SHIPPED = ROOT / "server" / "earshot_server" / "phone_page" / "files"
_DRAWN = ("*.html", "*.css", "*.svg", "*.webmanifest", "texts/*.json")
_PATIENCE = 300.0


def compiled() -> Mapping[str, bytes]:
    """All files of the page by their paths below the folder of a version.

    Raises:
        NoNodeError: There is no compiler, and it cannot be had.
        AssertionError: The compiler refuses the sources; it says why.
    """
    modules = compiler()
    page = PACKAGE / "page"
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run(  # noqa: S603 - the compiler of the lock
            [
                *(node(), modules / "typescript" / "bin" / "tsc", "--project", PACKAGE),
                *("--typeRoots", modules / "@types", "--noEmit", "false", "--outDir", folder),
                *("--removeComments", "--rewriteRelativeImportExtensions"),
            ],
            capture_output=True,
            text=True,
            check=False,
            timeout=_PATIENCE,
        )
        assert run.returncode == 0, run.stdout + run.stderr
        scripts = {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in sorted(Path(folder).rglob("*.js"))
        }
    others = {
        path.relative_to(PACKAGE).as_posix(): path.read_bytes()
        for pattern in _DRAWN
        for path in sorted(page.glob(pattern))
    }
    return dict(sorted({**scripts, **others}.items()))


def shipped() -> Mapping[str, bytes]:
    """All files of the page that the server's package has."""
    return {
        path.relative_to(SHIPPED).as_posix(): path.read_bytes()
        for path in sorted(SHIPPED.rglob("*"))
        if path.is_file()
    }


def _write() -> None:
    files = compiled()
    shutil.rmtree(SHIPPED, ignore_errors=True)
    for name, content in files.items():
        path = SHIPPED / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    sys.stdout.write(f"{len(files)} files in {SHIPPED}\n")


if __name__ == "__main__":
    _write()
