"""The process that moves phases on: ends gatherings, closes steps, opens the next ones.

Any number of drivers may run. Whoever finds something due takes a lease on the phase first, so that
others do not do the same work; should a lease run out under a slow closing, the store still lets
only one of them open the next step.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time

import msgspec

from earshot_protocol.errors import EarshotError, InvalidParametersError, WrongStateError
from earshot_server.discovery.interface import Discovery
from earshot_server.phases.coordinator import Coordinator
from earshot_server.store.database import Database, DatabaseUnavailableError
from earshot_server.store.postgres import PostgresPhaseStore
from earshot_server.store.registry import Gathering, Registry

LEASE_SECONDS = 60.0
LONGEST_PAUSE = 30.0
"""Seconds between turns while nothing works."""
PURGE_EVERY = 3600.0

_log = logging.getLogger(__name__)


class Driver:
    """Moves all phases of one database on.

    Args:
        database: where they are.
        discovery: finds global centroids.
        keep_seconds: how long members and snapshots of a phase stay after its end.
    """

    def __init__(self, database: Database, discovery: Discovery, keep_seconds: float) -> None:
        self._database = database
        self._discovery = discovery
        self._keep_seconds = keep_seconds
        self._store = PostgresPhaseStore(database)
        self._registry = Registry(database)
        self._owner = secrets.token_hex(8)
        self._coordinators: dict[bytes, Coordinator] = {}
        self._purged = -PURGE_EVERY

    def run(self, stop: threading.Event, pause: float) -> None:
        """Turn after turn, until told to stop; what fails is logged and tried again.

        Args:
            stop: set from another thread or by a signal.
            pause: seconds between turns.
        """
        failures = 0
        while not stop.is_set():
            try:
                self.turn()
                failures = 0
            except DatabaseUnavailableError as error:
                failures += 1
                _log.error("the driver waits for its database: %s", error)
            except Exception:  # whatever it is, phones wait for the next turn
                failures += 1
                _log.exception("a turn of the driver failed")
            stop.wait(min(LONGEST_PAUSE, pause * 2 ** min(failures, 16)))

    def turn(self) -> int:
        """Look once at everything that is under way.

        Returns:
            How many gatherings ended and steps were closed.

        Raises:
            DatabaseUnavailableError: the database cannot be reached or written.
        """
        now = self._database.now()
        moved = sum(
            self._end_gathering(gathering, now) for gathering in self._registry.gatherings()
        )
        self._coordinators = {
            phase: self._coordinators.get(phase) or self._adopt(phase, now)
            for phase in self._store.running()
        }
        moved += sum(self._advance(coordinator, now) for coordinator in self._coordinators.values())
        self._purge(now)
        return moved

    def _adopt(self, phase: bytes, now: float) -> Coordinator:
        """A phase that this driver sees for the first time."""
        coordinator = Coordinator(self._store, self._discovery, phase)
        try:
            if coordinator.adopt(now):
                _log.warning("a phase of a former version ends", extra={"phase": phase.hex()})
        except WrongStateError as error:
            _log.info("another driver was faster: %s", error)
        return coordinator

    def _advance(self, coordinator: Coordinator, now: float) -> bool:
        if not coordinator.due(now) or not self._lease(coordinator.phase):
            return False
        began = time.monotonic()
        try:
            before = coordinator.step
            moved = coordinator.advance(now)
        except WrongStateError as error:
            _log.info("another driver was faster: %s", error)
            return False
        finally:
            self._registry.release(coordinator.phase, self._owner)
        if moved:
            _log.info(
                "step closed",
                extra={
                    "phase": coordinator.phase.hex(),
                    "step": before,
                    "next": coordinator.step,
                    "seconds": round(time.monotonic() - began, 3),
                },
            )
        return moved

    def _end_gathering(self, gathering: Gathering, now: float) -> bool:
        """Start a phase with those who have joined, once they are enough or the time is over."""
        full = gathering.joined >= gathering.parameters.phones
        if not (full or now >= gathering.until) or not self._lease(gathering.phase):
            return False
        try:
            self._start(gathering, now)
        except EarshotError as error:
            if isinstance(error, DatabaseUnavailableError):
                raise
            self._registry.end_gathering(gathering.phase, str(error))
            _log.warning("a phase does not start: %s", error)
        finally:
            self._registry.release(gathering.phase, self._owner)
        return True

    def _start(self, gathering: Gathering, now: float) -> None:
        joined = self._registry.end_gathering(gathering.phase)
        if joined < gathering.least:
            raise InvalidParametersError(
                f"{joined} phones have joined in time; least_phones={gathering.least} are needed"
            )
        Coordinator.start(
            self._store,
            self._discovery,
            msgspec.structs.replace(gathering.parameters, phones=joined),
            now,
            phase=gathering.phase,
        )
        _log.info("phase started", extra={"phase": gathering.phase.hex(), "phones": joined})

    def _lease(self, phase: bytes) -> bool:
        return self._registry.lease(phase, self._owner, LEASE_SECONDS)

    def _purge(self, now: float) -> None:
        if time.monotonic() - self._purged < PURGE_EVERY:
            return
        self._purged = time.monotonic()
        gone = self._registry.purge(now - self._keep_seconds)
        if gone:
            _log.info("purged", extra={"phases": gone})
