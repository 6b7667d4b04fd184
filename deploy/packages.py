"""Install the packages of a lock file beside this Python, and print progress every few seconds.

    python deploy/packages.py LOCK

It prints lines instead of a bar, so that they also show in a log.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import time
from pathlib import Path
from threading import Thread

EVERY = 5.0
"""Seconds between two lines."""


def main(lock: Path) -> int:
    """Install with pip, which checks every hash, and return pip's exit status."""
    whole = sum("==" in line for line in lock.read_text(encoding="utf-8").splitlines())
    started, before = time.monotonic(), _installed()
    pip = subprocess.Popen(  # noqa: S603 - this Python's own pip
        [
            *(sys.executable, "-m", "pip", "--disable-pip-version-check", "install"),
            # Python compiles modules on import, and never imports most of these.
            *("--no-compile", "--progress-bar=off", "--require-hashes", "-r", str(lock)),
        ],
        stdout=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
    )
    found: list[str] = []
    new: list[str] = []
    reader = Thread(target=_read, args=(pip, found, new), daemon=True)
    reader.start()
    while reader.is_alive():
        reader.join(EVERY)
        if reader.is_alive():
            unpacked = f"unpacked {_installed() - before} of {len(new)}"
            _say(unpacked if new else f"fetched {len(found)} of {whole}", started)
    status = pip.wait()
    if status == 0:
        _say(f"all {len(found)} packages are installed", started)
    return status


def _read(pip: subprocess.Popen[str], found: list[str], new: list[str]) -> None:
    """Record each package that pip finds, and those that it unpacks, until pip ends."""
    for line in pip.stdout or ():
        # pip's words for a package of an index, one of a local folder, and one that is there.
        if line.startswith(("Collecting ", "Processing ", "Requirement already satisfied")):
            found.append(line)
        elif line.startswith("Installing collected packages: "):
            new += line.split(", ")


def _installed() -> int:
    """Return the number of packages in this environment."""
    return sum(1 for _ in Path(sysconfig.get_path("purelib")).glob("*.dist-info"))


def _say(what: str, started: float) -> None:
    passed = time.strftime("%M:%S", time.gmtime(time.monotonic() - started))
    print(f"{what}, {passed}", flush=True)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
