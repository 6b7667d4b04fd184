"""Programs that some tests run beside ours, found on the PATH or installed by the distribution."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

_PATIENCE = 600.0
"""Seconds for an installation, which downloads up to 200 MB."""
_SYSTEM = ("/usr/sbin", "/usr/local/sbin", "/sbin")
"""Where distributions put servers; a user's PATH may lack it."""
_VERSIONS = "/usr/lib/postgresql"
"""Where Debian puts the programs of each PostgreSQL, in no PATH."""


class MissingProgramError(Exception):
    """A test needs a program that the machine lacks; says what to run."""


def may_install() -> bool:
    """Whether packages can be installed: as root, where there is apt."""
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def install(*packages: str) -> None:
    """Install packages of the distribution.

    Raises:
        OSError: There is no apt.
        subprocess.SubprocessError: It failed, or took too long.
    """
    run("apt-get", "-qq", "update")
    run("apt-get", "-qq", "install", "--yes", "--no-install-recommends", *packages)


def run(*command: str) -> None:
    """Run a command that asks nothing.

    Raises:
        OSError: It cannot be started.
        subprocess.SubprocessError: It failed, or took too long.
    """
    subprocess.run(  # noqa: S603 - installers alone
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
        timeout=_PATIENCE,
        # In runlevel 1, packages that bring a service do not start it.
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"},
    )


def program(name: str, package: str) -> Path:
    """Return the path of a program, whose package is installed if it is missing and that may be.

    Raises:
        MissingProgramError: It is missing, and cannot be installed.
    """
    found = _which(name)
    if found is None and may_install():
        try:
            install(package)
        except subprocess.SubprocessError as error:
            raise MissingProgramError(
                f"{name} is missing, and `apt-get install {package}` failed: "
                f"{getattr(error, 'stderr', None) or error}"
            ) from error
        found = _which(name)
    if found is None:
        raise MissingProgramError(f"{name} is missing: sudo apt-get install {package}")
    return Path(found)


def _which(name: str) -> str | None:
    versions = (str(each) for each in sorted(Path(_VERSIONS).glob("*/bin")))
    path = os.pathsep.join((os.environ.get("PATH", ""), *_SYSTEM, *versions))
    return shutil.which(name, path=path)
