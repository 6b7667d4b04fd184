"""Supervisor of `earshot serve`, over a web server with N workers and a driver.

All state is in PostgreSQL, so every process may be killed at any time.
"""

from __future__ import annotations

import logging
import os
import secrets
import signal
import threading
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from earshot_server.processes import logs
from earshot_server.processes.address import Address, remember
from earshot_server.processes.children import (
    Child,
    end_with_parent,
    listen,
    run_web,
    supervise,
)
from earshot_server.processes.data_folder import check_writable, owning
from earshot_server.processes.embedded import EmbeddedDatabaseError, EmbeddedPostgres, embedded
from earshot_server.processes.quick_deaths import CALM
from earshot_server.processes.relay import relayed
from earshot_server.processes.settings import Serving

if TYPE_CHECKING:
    from flask import Flask

    from earshot_server.api.shared_counts import SharedCounts
    from earshot_server.processes.errands import HelperErrands
    from earshot_server.store.database import Database

DAY = 86_400.0

_log = logging.getLogger(__name__)


_SPARE_CONNECTIONS = 20
"""Connections of the embedded database reserved for inspection and maintenance."""
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
        """Return the configured URLs; None for the embedded database."""
        owner = serving.database
        if not owner:
            return None
        return cls(owner, serving.web_database or owner, serving.driver_database or owner)

    @property
    def are_separate(self) -> bool:
        """Whether web and driver have their own roles."""
        return (self.web, self.driver) != (self.owner, self.owner)


def serve(serving: Serving, ready: Callable[[str], None] = lambda address: None) -> None:
    """Serve until SIGTERM or SIGINT; requests under way are answered first.

    Args:
        serving: Settings of the server.
        ready: Function that is called with the server's URL once it listens and its database is up
            to date.

    Raises:
        AddressError: The address is in use or not ours.
        DatabaseUnavailableError: The database cannot be reached or written.
        QuickDeathsError: The web server or the driver keeps dying right after its start.
        UnsuitableDatabaseError: The database or a role has unsuitable settings.
        NewerSchemaError: A newer version of this software wrote the database.
        DataFolderError: The data folder cannot be written.
        FolderInUseError: Another server uses the data folder.
        CredentialsError: The files of the data folder are damaged or open to others.
        OtherCredentialsError: The database is served with other credentials.
    """
    from earshot_server.credentials import Credentials
    from earshot_server.phases.set_back import end_if_set_back
    from earshot_server.store.database import Database
    from earshot_server.store.fingerprints import claim
    from earshot_server.store.privileges import separate
    from earshot_server.store.suitability import refuse_unsuitable

    os.umask(0o077)  # only we may read the files that our processes create
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with ExitStack() as stack:
        errors = stack.enter_context(relayed())
        logs.configure(serving.log_level)
        check_writable(serving.data)
        stack.enter_context(owning(serving.data))
        asked = serving.address
        listener = stack.enter_context(listen(asked.host, asked.port))
        address = Address(asked.host, listener.getsockname()[1])
        remember(serving.data, address)
        credentials = Credentials.load_or_create(serving.data, leads=serving.leads)
        urls, postgres = _Urls.given(serving), None
        if urls is None:
            # PostgreSQL's own default is 100.
            most = max(100, serving.database_connections + _SPARE_CONNECTIONS)
            postgres = stack.enter_context(embedded(serving.data, {"max_connections": str(most)}))
            urls = _Urls(postgres.url, *map(postgres.url_of, _EMBEDDED_ROLES))
        with closing(Database(urls.owner, pool_size=1)) as database:
            refuse_unsuitable(database)
            database.migrate()
            fingerprints = credentials.fingerprints()
            claim(database, serving.data, fingerprints, renew=serving.renew_credentials)
            if ended := end_if_set_back(database, serving.data):
                _log.warning("the database was set back: %d phases under way in it ended", ended)
            if urls.are_separate:
                separate(database, urls.web, urls.driver)
            else:
                _log.warning(
                    "web and driver have all rights of the database's owner: see --web-database"
                )
        for url in (urls.web, urls.driver):
            with closing(Database(url, pool_size=1)) as database:
                refuse_unsuitable(database)
                database.check()
        # Each process gets only the URL of its own role.
        for name in _SECRET_VARIABLES:
            os.environ.pop(name, None)
        serving = replace(serving, database=None, web_database=None, driver_database=None)
        driver = Child("driver", serving.log_level, _drive, serving, urls.driver)
        stack.callback(driver.end)
        app = partial(_app, serving, urls.web)
        web = Child("web", serving.log_level, run_web, serving, app, listener)
        # The web server ends first, so that every accepted answer is acknowledged.
        stack.callback(web.end)
        ready(address.reachable.url)
        supervise((web, driver), stop, partial(_revive, postgres, stop), errors.last_words)


def _revive(postgres: EmbeddedPostgres | None, stop: threading.Event) -> None:
    try:
        if postgres is not None and postgres.revive():
            _log.error("the embedded PostgreSQL had ended and was started again")
    except EmbeddedDatabaseError as error:  # its disk may be full, for now
        _log.error("the embedded PostgreSQL has ended: %s", error)
        stop.wait(CALM)


def _app(serving: Serving, url: str, counts: SharedCounts) -> Flask:
    """Create one worker's application after the fork, so that connections are not shared."""
    from earshot_server.api.app import ApiSettings, create_app
    from earshot_server.credentials import Credentials
    from earshot_server.store.database import Database

    return create_app(
        ApiSettings(
            # One more for the readiness check while all threads are busy.
            database=Database(url, pool_size=serving.threads + 1),
            credentials=Credentials.load_or_create(serving.data, leads=serving.leads),
            phone_origins=serving.origins,
            phone_page=serving.phone_page or "",
            helper=serving.helper or "",
            helper_key=serving.helper_identity,
            phone_requests_per_minute=serving.requests_per_minute,
            address_requests_per_minute=serving.address_requests_per_minute,
            proxies=serving.proxies,
            counts=counts,
            data_folder=serving.data,
        )
    )


def _drive(serving: Serving, url: str) -> None:
    """Run the driver."""
    from earshot_server.discovery.optics import Optics
    from earshot_server.processes.driver import Driver
    from earshot_server.store.database import Database

    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    end_with_parent(stop.set)
    with closing(Database(url, pool_size=serving.driver_connections)) as database:
        driver = Driver(
            database, Optics(), serving.keep_days * DAY, errands=_errands(serving, database)
        )
        driver.run(stop, serving.pause)


def _errands(serving: Serving, database: Database) -> HelperErrands | None:
    """Return the errands to the helper; None if the server has no helper."""
    from earshot_protocol.two_operators.leader import LeaderKeys
    from earshot_protocol.two_operators.messages import read_identity
    from earshot_server.credentials import Credentials
    from earshot_server.helper_line import HelperLine
    from earshot_server.processes.errands import HelperErrands
    from earshot_server.proofs.engine import fastest

    key = Credentials.load_or_create(serving.data, leads=serving.leads).leader_key
    if key is None or not serving.helper or not serving.helper_key:
        return None
    return HelperErrands(
        database,
        LeaderKeys(key, read_identity(serving.helper_key), os.urandom, fastest),
        partial(HelperLine, serving.helper, key),
        secrets.token_hex(8),
    )
