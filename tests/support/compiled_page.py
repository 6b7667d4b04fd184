"""The page of a phone as browsers get it, and its package for those who have no bundler.

    python -m support.compiled_page

writes both to where the server's package has them, so that an installed Earshot needs no bundler.
The same sources and lock make the same bytes on every machine; a test compares them.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from support.node import PACKAGE, ROOT, node, node_modules

SHIPPED = ROOT / "server" / "earshot_server" / "phone_page" / "files"
_STARTS = (
    "index",
    "hearing",
    *(f"page/{name}" for name in ("launch", "main", "service", "worker", "worklet")),
)
"""Scripts that are loaded by their address; the others become parts of these."""
_SHARED = re.compile(r"shared-(\w{8})\.js")
"""Name of a script that others share, as the bundler gives it: by a digest of its contents."""
_DRAWN = ("*.html", "*.css", "*.svg", "*.webmanifest", "texts/*.json")
_PATIENCE = 300.0


def compiled() -> Mapping[str, bytes]:
    """All files of the page by their paths below the folder of a version.

    Raises:
        NoNodeError: There is no bundler, and it cannot be had.
        AssertionError: The bundler refuses the sources; it says why.
    """
    modules = node_modules()
    page = PACKAGE / "page"
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run(  # noqa: S603 - the bundler of the lock
            [
                *(node(), modules / "esbuild" / "bin" / "esbuild"),
                *(f"{name}.ts" for name in _STARTS),
                *("--bundle", "--splitting", "--minify", "--format=esm", "--log-level=warning"),
                # Beside the page's own scripts, whatever is shared finds its files as they do.
                *("--outbase=.", f"--outdir={folder}", "--chunk-names=page/shared-[hash]"),
            ],
            cwd=PACKAGE,
            capture_output=True,
            text=True,
            check=False,
            timeout=_PATIENCE,
        )
        assert run.returncode == 0, run.stdout + run.stderr
        scripts = _numbered(
            {
                path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
                for path in Path(folder).rglob("*.js")
            }
        )
    others = {
        path.relative_to(PACKAGE).as_posix(): path.read_bytes()
        for pattern in _DRAWN
        for path in sorted(page.glob(pattern))
    }
    return dict(sorted({**scripts, **others}.items()))


def _numbered(scripts: Mapping[str, str]) -> Mapping[str, bytes]:
    """Number shared scripts in the order of their imports instead.

    A change of one script then changes no other: the folder of the page's version is what tells
    browsers that a file is another.
    """
    waiting, numbers = [f"{name}.js" for name in _STARTS], dict[str, int]()
    for path in waiting:
        for digest in _SHARED.findall(scripts[path]):
            if digest not in numbers:
                numbers[digest] = len(numbers) + 1
                waiting.append(f"page/shared-{digest}.js")

    def named(text: str) -> str:
        return _SHARED.sub(lambda found: f"shared-{numbers[found[1]]}.js", text)

    return {named(path): named(text).encode() for path, text in scripts.items()}


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
