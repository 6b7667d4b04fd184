"""Supervisor of `earshot serve`, over a web server with N workers and a driver.

All state is in PostgreSQL, so that every process may be killed at any time. The supervisor restarts
processes that end without being told to, and they end when it does, however it ends.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import secrets
import signal
import socket
import stat
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from multiprocessing import connection
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from earshot_protocol.errors import LocalError
from earshot_server.processes import logs
from earshot_server.processes.address import Address, remember
from earshot_server.processes.embedded import EmbeddedDatabaseError, EmbeddedPostgres, embedded
from earshot_server.processes.settings import Serving

if TYPE_CHECKING:
    from earshot_server.processes.errands import HelperErrands
    from earshot_server.store.database import Database

DAY = 86_400.0
_GRACE = 30.0
"""Seconds granted for requests under way, and then for the driver's turn."""
_CALM = 10.0
"""Seconds a process must have lived to be restarted at once; others are after a pause."""

_log = logging.getLogger(__name__)


_SPARE_CONNECTIONS = 20
"""Connections of the embedded database for people who look into it, and for its own work."""
_EMBEDDED_ROLES = ("earshot_web", "earshot_driver")
"""Roles of web and driver in the embedded database."""
_SECRET_VARIABLES = ("EARSHOT_DATABASE", "EARSHOT_WEB_DATABASE", "EARSHOT_DRIVER_DATABASE")


class _Urls(NamedTuple):
    """URLs of one database, for each role."""

    owner: str
    web: str
    driver: str

    @classmethod
    def given(cls, serving: Serving) -> _Urls | None:
        """Return the URLs that the operator gave; None where the database is our own."""
        owner = serving.database
        if not owner:
            return None
        return cls(owner, serving.web_database or owner, serving.driver_database or owner)

    @property
    def are_separate(self) -> bool:
        """Whether web and driver have roles of their own."""
        return (self.web, self.driver) != (self.owner, self.owner)


class AddressError(LocalError):
    """The server cannot listen at the address that it was given."""


class DataFolderError(LocalError):
    """The data folder cannot be written."""


def serve(serving: Serving, ready: Callable[[str], None] = lambda address: None) -> None:
    """Serve until SIGTERM or SIGINT; requests under way are answered first.

    Args:
        serving: Settings of the server.
        ready: Function that is called with the server's URL as soon as it listens and its database
            is up to date.

    Raises:
        AddressError: The address is in use or not ours.
        DatabaseUnavailableError: The database cannot be reached or written.
        NewerSchemaError: A newer version of this software wrote the database.
        DataFolderError: The data folder cannot be written.
        CredentialsError: The files of the data folder are damaged or open to others.
        OtherCredentialsError: The database is served with other credentials.
    """
    from earshot_server.credentials import Credentials
    from earshot_server.store.database import Database
    from earshot_server.store.fingerprints import claim
    from earshot_server.store.privileges import separate

    os.umask(0o077)  # everything that our processes create from here on is for us alone
    logs.configure(serving.log_level)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with ExitStack() as stack:
        asked = serving.address
        listener = stack.enter_context(_listen(asked.host, asked.port))
        address = Address(asked.host, listener.getsockname()[1])
        _check_writable(serving.data)
        remember(serving.data, address)
        credentials = Credentials.load_or_create(serving.data, leads=serving.leads)
        urls, postgres = _Urls.given(serving), None
        if urls is None:
            # PostgreSQL's own default is 100.
            most = max(100, serving.database_connections + _SPARE_CONNECTIONS)
            postgres = stack.enter_context(embedded(serving.data, {"max_connections": str(most)}))
            urls = _Urls(postgres.url, *map(postgres.url_of, _EMBEDDED_ROLES))
        with closing(Database(urls.owner, pool_size=1)) as database:
            database.migrate()
            fingerprints = credentials.fingerprints()
            claim(database, serving.data, fingerprints, renew=serving.renew_credentials)
            if urls.are_separate:
                separate(database, urls.web, urls.driver)
            else:
                _log.warning(
                    "web and driver may do all that the database's owner may: see --web-database"
                )
        for url in (urls.web, urls.driver):
            with closing(Database(url, pool_size=1)) as database:
                database.check()
        # Each is told only its own role.
        for name in _SECRET_VARIABLES:
            os.environ.pop(name, None)
        serving = replace(serving, database=None, web_database=None, driver_database=None)
        driver = _Child("driver", _drive, serving, urls.driver)
        stack.callback(driver.end)
        web = _Child("web", _web, serving, urls.web, listener)
        # The web server ends first, so that every accepted answer is acknowledged.
        stack.callback(web.end)
        ready(address.url)
        _supervise((web, driver), postgres, stop)


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family, backlog=2048)
    except (OSError, TypeError, UnicodeError) as error:  # a name may have no form in ASCII
        reason = getattr(error, "strerror", None) or error
        raise AddressError(
            f"cannot listen at {host}:{port} ({reason}): choose another --host or --port"
        ) from error
    # Connections inherit it, even those that come before anybody accepts them.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def _check_writable(folder: Path) -> None:
    """Check the folder here, before a process that would be restarted again and again fails."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
        if folder.stat().st_mode & (stat.S_IRWXG | stat.S_IROTH | stat.S_IWOTH):
            _log.warning("the data folder %s is open to other users: chmod 700 it", folder)
    except OSError as error:
        raise DataFolderError(
            f"the data folder {folder} cannot be written ({error.strerror}): choose another --data"
        ) from error


class _Child:
    """Process that the supervisor keeps alive."""

    def __init__(self, name: str, target: Callable[..., None], *arguments: object) -> None:
        self.name = name
        self._target = target
        self._arguments = arguments
        self.start()

    def start(self) -> None:
        # A fresh interpreter has neither threads nor connections of this one.
        context = multiprocessing.get_context("spawn")
        self.process = context.Process(target=self._target, args=self._arguments, name=self.name)
        self.process.start()
        self.started = time.monotonic()

    def end(self) -> None:
        self.process.terminate()
        self.process.join(_GRACE)
        if self.process.is_alive():
            _log.error("%s does not stop and is killed", self.name)
            self.process.kill()
            self.process.join()


def _supervise(
    children: tuple[_Child, ...], postgres: EmbeddedPostgres | None, stop: threading.Event
) -> None:
    while not stop.is_set():
        if postgres is not None:
            _revive(postgres, stop)
        connection.wait([child.process.sentinel for child in children], timeout=0.2)
        for child in children:
            if child.process.is_alive() or stop.is_set():
                continue
            code = child.process.exitcode
            _log.error("%s has ended with status %s and is started again", child.name, code)
            if time.monotonic() - child.started < _CALM:
                stop.wait(1.0)
            child.start()


def _revive(postgres: EmbeddedPostgres, stop: threading.Event) -> None:
    try:
        if postgres.revive():
            _log.error("the embedded PostgreSQL had ended and was started again")
    except EmbeddedDatabaseError as error:  # its disk may be full, and have room again later
        _log.error("the embedded PostgreSQL has ended: %s", error)
        stop.wait(_CALM)


def _end_with_parent(end: Callable[[], None]) -> None:
    """Call `end` once the supervisor is gone, even if it was killed."""
    parent = multiprocessing.parent_process()

    def wait() -> None:
        if parent is not None:
            parent.join()
            end()

    threading.Thread(target=wait, daemon=True).start()


def _web(serving: Serving, url: str, listener: socket.socket) -> None:
    """Run the web server: gunicorn's arbiter, whose workers each make their own app."""
    os.setsid()  # only the supervisor is to get a Ctrl-C from the terminal
    _end_with_parent(lambda: os.kill(os.getpid(), signal.SIGTERM))
    logs.configure(serving.log_level)
    from earshot_server.processes.web import run

    run(serving, url, listener)


def _drive(serving: Serving, url: str) -> None:
    """Run the driver."""
    os.setsid()
    logs.configure(serving.log_level)
    from earshot_server.discovery.optics import Optics
    from earshot_server.processes.driver import Driver
    from earshot_server.store.database import Database

    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    _end_with_parent(stop.set)
    with closing(Database(url, pool_size=serving.driver_connections)) as database:
        driver = Driver(
            database, Optics(), serving.keep_days * DAY, errands=_errands(serving, database)
        )
        driver.run(stop, serving.pause)


def _errands(serving: Serving, database: Database) -> HelperErrands | None:
    """Return the errands to the helper; None where the server has no helper."""
    from earshot_protocol.two_operators.leader import LeaderKeys
    from earshot_protocol.two_operators.messages import read_identity
    from earshot_server.credentials import Credentials
    from earshot_server.helper.line import HelperLine
    from earshot_server.processes.errands import HelperErrands

    key = Credentials.load_or_create(serving.data, leads=serving.leads).leader_key
    if key is None or not serving.helper or not serving.helper_key:
        return None
    return HelperErrands(
        database,
        LeaderKeys(key, read_identity(serving.helper_key)),
        partial(HelperLine, serving.helper, key),
        secrets.token_hex(8),
    )
