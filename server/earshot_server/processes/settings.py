"""Settings of a server: the options of `earshot serve`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Protocol

from cyclopts import Parameter

from earshot_protocol.connecting import connection, is_this_machine
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.two_operators.messages import read_identity
from earshot_server.origins import HERE, origin_of, read_origin, read_page
from earshot_server.processes.address import Address, remembered

LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
_RANGES: dict[str, tuple[float, float]] = {
    "port": (0, 65_535),
    "workers": (1, 64),
    "threads": (1, 256),
    "pause": (0.01, 30.0),
    "keep_days": (0, 36_500),
    "requests_per_minute": (1, 10**9),
    "address_requests_per_minute": (1, 10**9),
    "address_connections": (1, 10**6),
    "proxies": (0, 16),
}
_MOST_CONNECTIONS = 500
"""Largest number of connections to the database: each is a process of PostgreSQL."""


class WebSettings(Protocol):
    """Settings of web processes, of the server or the helper."""

    @property
    def data(self) -> Path:
        """Data folder."""

    @property
    def workers(self) -> int:
        """Number of web processes."""

    @property
    def threads(self) -> int:
        """Threads of each web process."""

    @property
    def address_connections(self) -> int:
        """Most connections from one address to each worker; no limit behind proxies."""

    @property
    def proxies(self) -> int:
        """Number of reverse proxies before the server."""

    @property
    def log_level(self) -> str:
        """Least severe level that is logged."""


@dataclass(frozen=True)
class Serving:
    """Settings for serving: the options of `earshot serve`.

    Attributes:
        data: Folder of the credentials, and of the embedded database.
        database: URL of a PostgreSQL (postgresql://…); without it, one is run in the data folder.
        web_database: URL of the same database for the web processes, with their own role.
        driver_database: URL of the same database for the driver, with its own role.
        host: Address to listen at; an address that other machines reach requires --proxies. By
            default that of the last start with this data folder, initially 127.0.0.1.
        port: Port to listen at; 0 for any free one. By default that of the last start, initially
            8000.
        workers: Number of web processes.
        threads: Threads of each web process.
        pause: Seconds between two turns of the driver.
        keep_days: Days for which members and snapshots of ended phases are kept.
        requests_per_minute: Most requests from one phone to each worker in a minute.
        address_requests_per_minute: Most requests from one address to each worker in a minute.
        address_connections: Most connections from one address to each worker; no limit behind
            --proxies.
        proxies: Number of reverse proxies before the server, whose X-Forwarded-For is trusted.
        phone_origins: Origin of pages that hold phones, such as https://phone.example.org; repeat
            the option for further ones. Without any, phones in browsers cannot reach the server.
        phone_page: URL of a page that holds a phone, to which the dashboard's invitations lead; its
            origin is allowed like those of --phone-origin. For a trial, `here` lets the server
            serve the page itself, at /phone/.
        helper: URL of the helper of sums by two operators, of another organization; without it, the
            server leads no such sums.
        helper_key: The helper's public key, 64 hexadecimal digits.
        log_level: Least severe level that is logged: debug, info, warning, error or critical.
        renew_credentials: Replace the credentials that the database knows by those of the data
            folder.
    """

    data: Path = Path("earshot-data")
    database: Annotated[str | None, Parameter(env_var="EARSHOT_DATABASE")] = None
    web_database: Annotated[str | None, Parameter(env_var="EARSHOT_WEB_DATABASE")] = None
    driver_database: Annotated[str | None, Parameter(env_var="EARSHOT_DRIVER_DATABASE")] = None
    host: str | None = None
    port: int | None = None
    workers: int = 2
    threads: int = 8
    pause: float = 0.5
    keep_days: float = 30.0
    requests_per_minute: int = 120
    address_requests_per_minute: int = 6000
    address_connections: int = 1000
    proxies: int = 0
    phone_origins: Annotated[
        tuple[str, ...],
        Parameter(
            name="--phone-origin", env_var="EARSHOT_PHONE_ORIGINS", negative=(), show_default=False
        ),
    ] = ()
    phone_page: Annotated[str | None, Parameter(env_var="EARSHOT_PHONE_PAGE")] = None
    helper: Annotated[str | None, Parameter(env_var="EARSHOT_HELPER")] = None
    helper_key: Annotated[str | None, Parameter(env_var="EARSHOT_HELPER_KEY")] = None
    log_level: str = "INFO"
    renew_credentials: bool = False

    @property
    def leads(self) -> bool:
        """Whether it leads sums by two operators; an empty environment variable counts as unset."""
        return bool(self.helper)

    @property
    def origins(self) -> tuple[str, ...]:
        """Origins of all pages that hold phones."""
        return (*self.phone_origins, *map(origin_of, self._page_elsewhere))

    @property
    def _page_elsewhere(self) -> tuple[str, ...]:
        """URL of the page on another host, if there is one."""
        return (self.phone_page,) if self.phone_page not in (None, "", HERE) else ()

    @property
    def helper_identity(self) -> str:
        """Public key of the helper, in lower-case hexadecimal; empty without a helper."""
        return read_identity(self.helper_key).hex() if self.leads and self.helper_key else ""

    @property
    def database_connections(self) -> int:
        """Largest number of connections to the database of all processes together."""
        return self.workers * (self.threads + 1) + self.driver_connections + 1

    @property
    def driver_connections(self) -> int:
        """Largest number of the driver's connections: for its turns, its lease, and its errands."""
        return 4 if self.leads else 2

    @property
    def address(self) -> Address:
        """Address to listen at: as configured, by default that of the last start."""
        known = remembered(self.data)
        return Address(
            known.host if self.host is None else self.host,
            known.port if self.port is None else self.port,
        )

    def check(self) -> None:
        """Check constraints that the types do not express.

        Raises:
            InvalidInputError: An option is invalid; the message says what is possible.
            AddressFileError: The data folder's file of the address is damaged.
        """
        check_ranges(self)
        if self.database_connections > _MOST_CONNECTIONS:
            raise InvalidInputError(
                f"--workers {self.workers} --threads {self.threads}: would hold "
                f"{self.database_connections} connections to the database; at most "
                f"{_MOST_CONNECTIONS}, one for each thread and one for each worker"
            )
        # An empty environment variable counts as unset.
        if bool(self.web_database) != bool(self.driver_database) or (
            self.web_database and not self.database
        ):
            raise InvalidInputError(
                "--web-database, --driver-database: give both together with --database, or neither"
            )
        check_web(self, self.address.host)
        for option, read, given in (
            ("--phone-origin", read_origin, self.phone_origins),
            ("--phone-page", read_page, self._page_elsewhere),
        ):
            try:
                for each in given:
                    read(each)
            except InvalidInputError as error:
                raise InvalidInputError(f"{option}: {error}") from None
        if bool(self.helper) != bool(self.helper_key):
            raise InvalidInputError("--helper, --helper-key: give both, or neither")
        if self.helper and self.helper_key:
            try:
                connection(self.helper, None, 1.0)
                read_identity(self.helper_key)
            except InvalidInputError as error:
                raise InvalidInputError(f"--helper, --helper-key: {error}") from None


def check_ranges(settings: object) -> None:
    """Check that the settings' numbers are in their ranges.

    Raises:
        InvalidInputError: A number is out of range; the message states the range.
    """
    for name, (least, most) in _RANGES.items():
        given = getattr(settings, name, None)
        if given is not None and not least <= given <= most:  # also catches NaN
            raise InvalidInputError(
                f"--{name.replace('_', '-')} {given}: must be from {least:g} to {most:g}"
            )


def check_web(settings: WebSettings, host: str) -> None:
    """Check that the address is private or behind a proxy, and that the log level exists.

    Raises:
        InvalidInputError: One of them is invalid; the message says what is possible.
    """
    if not settings.proxies and not is_this_machine(host):
        raise InvalidInputError(
            f"--host {host!r}: other machines would reach the server over plain HTTP; "
            "listen at 127.0.0.1, or give --proxies 1 if the server can only be reached through "
            "a reverse proxy with TLS"
        )
    if settings.log_level not in LOG_LEVELS:
        raise InvalidInputError(
            f"--log-level {settings.log_level}: must be one of {', '.join(LOG_LEVELS).lower()}"
        )
