"""Write a release into a folder, as `make release` does: packages, encoders, SBOMs, checksums.

    python -m support.release FOLDER

All is made from tracked files and with the commit's time, so that a commit has the same bytes
wherever it is built.
"""

from __future__ import annotations

import hashlib
import json
import os
import posixpath
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from earshot_protocol.distribution import NAME, PHONE
from earshot_protocol.shipped_encoders import SHIPPED_ENCODERS
from support.closure import distributions, named
from support.node import ROOT, node_modules, npm

SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROJECT: dict[str, Any] = SETTINGS["project"]
VERSION: str = PROJECT["version"]
PHONE_PACKAGES = ("protocol/earshot_protocol", "client/earshot_client")
PHONE_EXTRAS = ("phone", "proofs", "microphone")
PHONE_PAGE = "client/earshot-phone.md"
"""What an index shows of the phone alone."""

_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!\w+:|#)([^)\s]+)\)")
"""A picture or a link to another file of the repository."""


def main(folder: Path) -> None:
    """Write a release of the last commit into a folder, in place of what is there."""
    if changed := _git("status", "--porcelain"):
        sys.exit(f"a release is made from a commit; these files are in none:\n{changed}")
    os.umask(0o022)  # npm's packages have files' modes
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as name:
        tree, phone = Path(name, "tree"), Path(name, "phone")
        lay_out(tree)
        lay_out_phone(tree, phone)
        for source in (tree, phone):
            build(source, folder)
        pack(tree, folder)
        bills = {PHONE: bill(phone, phone_lock())} | {
            f"{NAME}-{part}": bill(tree, (tree / place / "requirements.lock").read_text("utf-8"))
            for part, place in (("server", "deploy"), ("simulations", "simulations"))
        }
    for product, text in bills.items():
        (folder / f"{product}-{VERSION}.cdx.json").write_text(text, "utf-8")
    packages = sorted({*folder.glob("*.whl"), *folder.glob("*.tar.gz")})
    _run(Path(sys.executable).with_name("twine"), "check", "--strict", *packages)
    for encoder in SHIPPED_ENCODERS:
        for end in (".tflite", "-credits.txt"):
            shutil.copy(ROOT / "protocol/earshot_protocol/data" / (encoder + end), folder)
    files = {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
    sums = (f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in files.items())
    (folder / "SHA256SUMS").write_text("".join(sums), "utf-8")
    for name, data in files.items():
        print(f"{len(data):>9,}  {name}")
    if repository() is None:
        print(
            "pyproject.toml names no repository ([project.urls], Repository), so the packages' "
            "pages on an index have neither pictures nor links to other pages."
        )


def lay_out(tree: Path) -> None:
    """Copy the tracked files into a new folder, with a README whose links hold on an index."""
    for name in filter(None, _git("ls-files", "-z").split("\0")):
        if (ROOT / name).is_file():  # or it was removed since the last commit
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, tree / name)
            (tree / name).chmod(0o755 if os.access(ROOT / name, os.X_OK) else 0o644)
    page = (tree / "README.md").read_text("utf-8")
    (tree / "README.md").write_text(on_index(page, ".", repository()), "utf-8")


def lay_out_phone(tree: Path, folder: Path) -> None:
    """Copy protocol and client of a laid out tree into a project of their own."""
    for package in PHONE_PACKAGES:
        shutil.copytree(tree / package, folder / Path(package).name)
    for name in PROJECT["license-files"]:
        shutil.copy(tree / name, folder)
    page = on_index((tree / PHONE_PAGE).read_text("utf-8"), "client", repository())
    (folder / "README.md").write_text(page, "utf-8")
    extras = PROJECT["optional-dependencies"]
    project = PROJECT | {
        "name": PHONE,
        "description": "The phone of Earshot: protocol and client, for apps.",
        "optional-dependencies": {
            extra: [line.replace(NAME, PHONE) for line in extras[extra]] for extra in PHONE_EXTRAS
        },
    }
    tables = {
        "build-system": SETTINGS["build-system"],
        "project": project,
        "tool.hatch.build.targets.wheel": {
            "packages": [Path(package).name for package in PHONE_PACKAGES]
        },
    }
    lines = (
        f"[{table}]\n" + "".join(f"{key} = {_toml(value)}\n" for key, value in entries.items())
        for table, entries in tables.items()
    )
    (folder / "pyproject.toml").write_text("\n".join(lines), "utf-8")


def build(source: Path, folder: Path) -> None:
    """Build the source distribution and the wheel of a project, with the locked hatchling."""
    _run(sys.executable, "-m", "hatchling", "build", "-d", folder, cwd=source)


def pack(tree: Path, folder: Path) -> None:
    """Build the package of the phone in TypeScript, with a README whose links hold in it."""
    sources = tree / "client" / "web"
    page = (sources / "README.md").read_text("utf-8")
    (sources / "README.md").write_text(on_index(page, "client/web", repository()), "utf-8")
    (sources / "node_modules").symlink_to(node_modules())
    packed = npm(sources, "pack", "--pack-destination", str(folder))
    if packed.returncode:
        sys.exit(packed.stderr)


def on_index(page: str, folder: str, repository: str | None) -> str:
    """Return a page whose relative links hold outside the repository, or are text.

    Args:
        page: Markdown.
        folder: Place of the page in the repository.
        repository: Address of the repository, laid out as GitHub does; None if it has none.
    """

    def link(found: re.Match[str]) -> str:
        picture, text, target = found.groups()
        if repository is None:
            return f"*{text}*" if picture else text
        path = posixpath.normpath(posixpath.join(folder, target))
        return f"{picture}[{text}]({repository}/{'raw' if picture else 'blob'}/v{VERSION}/{path})"

    return _LINK.sub(link, page)


def repository() -> str | None:
    """Return the repository's address, which packages link to."""
    address: str | None = PROJECT.get("urls", {}).get("Repository")
    return address


def phone_lock() -> str:
    """Return the part of the whole lock that an app carries, with LiteRT and proofs."""
    wanted = named(distributions("phone", "proofs"))
    entries = re.split(r"\n(?=\w)", (ROOT / "requirements.lock").read_text("utf-8"))[1:]
    return "\n".join(each for each in entries if re.split(r"[=[]", each)[0] in wanted)


def bill(source: Path, lock: str) -> str:
    """Return the software bill of materials of a project with a lock, as CycloneDX's JSON."""
    return _run(
        *(Path(sys.executable).with_name("cyclonedx-py"), "requirements", "--output-reproducible"),
        *("--pyproject", source / "pyproject.toml", "--mc-type", "library", "-"),
        given=lock,
    )


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        entries = (f"{json.dumps(key)} = {_toml(each)}" for key, each in value.items())
        return f"{{ {', '.join(entries)} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value, ensure_ascii=False)


def _git(*words: str) -> str:
    return _run("git", "-C", ROOT, *words)


def _run(*words: str | Path, cwd: Path | None = None, given: str = "") -> str:
    """Return what a program prints; exit with what it says if it fails."""
    environment = dict(os.environ)
    if words[0] != "git":
        environment.setdefault("SOURCE_DATE_EPOCH", _git("log", "-1", "--format=%ct").strip())
    done = subprocess.run(  # noqa: S603 - with our own words
        words,
        cwd=cwd,
        env=environment,
        input=given,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    if done.returncode:
        sys.exit(f"{words[0]}: {done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
