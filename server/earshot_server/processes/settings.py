"""How a server is run; what `earshot serve` is told."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Serving:
    """How to serve; the options of the same names say what each is."""

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
    address_connections: int = 1000
    proxies: int = 0
    log_level: str = "INFO"
