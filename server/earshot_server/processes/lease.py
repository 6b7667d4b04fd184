"""The right of one driver to work on a phase, renewed for as long as it works."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from earshot_server.store.database import DatabaseUnavailableError
from earshot_server.store.registry import Registry

_RENEWALS = 3
"""Within the time of a lease."""

_log = logging.getLogger(__name__)


@contextmanager
def leased(registry: Registry, phase: bytes, owner: str, seconds: float) -> Iterator[bool]:
    """Hold the lease of a phase within the block.

    A thread of its own renews it, so that it outlasts minutes of work and ends soon after its
    process. Whoever opens a step checks it once more, in the same transaction; so it is no harm if
    this thread comes too late.

    Args:
        registry: keeps leases.
        phase: which one.
        owner: a name that no other driver has.
        seconds: after which others may take a lease that is not renewed.

    Yields:
        Whether nobody else has it.
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
