"""How a server is run; what `earshot serve` is told."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Serving:
    """How to serve.

    Attributes:
        data: folder of the credentials, and of the embedded database if there is one.
        database: URL of a PostgreSQL; None for an embedded one.
        host: address to listen at.
        port: to listen at; 0 for any free one.
        workers: web processes.
        threads: of each.
        pause: seconds between two turns of the driver.
        keep_days: how long members and snapshots of a phase stay after its end.
        requests_per_minute: of one phone, to each worker, at most.
        address_requests_per_minute: of one address, to each worker, at most.
        proxies: reverse proxies before the server, each of which adds to X-Forwarded-For.
        log_level: the least that is logged.
    """

    data: Path
    database: str | None = None
    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 2
    threads: int = 8
    pause: float = 0.5
    keep_days: float = 30.0
    requests_per_minute: int = 120
    address_requests_per_minute: int = 6000
    proxies: int = 0
    log_level: str = "INFO"
