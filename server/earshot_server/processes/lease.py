"""Lease that gives one driver the right to work on a phase, renewed for as long as it works."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from earshot_server.store.database import DatabaseUnavailableError
from earshot_server.store.registry import Registry

_RENEWALS = 3
"""Renewals within the time of a lease."""

_log = logging.getLogger(__name__)


@contextmanager
def leased(registry: Registry, phase: bytes, owner: str, seconds: float) -> Iterator[bool]:
    """Hold the lease of a phase within the block.

    A thread of its own renews the lease, so that it outlasts minutes of work and ends soon after
    its process. The lease is checked again in the transaction that opens a step, so no harm is done
    if the thread is too late.

    Args:
        registry: Registry that keeps leases.
        phase: Identifier of the phase.
        owner: Name that no other driver has.
        seconds: Seconds after which others may take a lease that is not renewed.

    Yields:
        Whether the lease was obtained.
    """
    if not registry.lease(phase, owner, seconds):
        yield False
        return
    done = threading.Event()

    def renew() -> None:
        while not done.wait(seconds / _RENEWALS):
            try:
                if not registry.renew(phase, owner, seconds):
                    return
            except DatabaseUnavailableError as error:
                _log.warning("a lease could not be renewed: %s", error)

    thread = threading.Thread(target=renew, name="lease", daemon=True)
    thread.start()
    try:
        yield True
    finally:
        done.set()
        thread.join()
        registry.release(phase, owner)
