"""Driver, the process that moves phases on: it ends gatherings, closes steps and opens the next.

It also opens the phases of campaigns when they are due.

Any number of drivers may run. A driver takes a lease on a phase with something due, and renews it
while it works, so that others do not do the same work; if it loses the lease, it discards its work.
A failure in one phase does not affect the others: the phase is tried again after increasing pauses,
and fails after too many tries.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import msgspec

from earshot_protocol.errors import EarshotError, InvalidParametersError
from earshot_server.campaigns.conduct import CampaignConductor
from earshot_server.discovery.interface import CentroidDiscovery
from earshot_server.phases.coordinator import Coordinator
from earshot_server.phases.ending import end_unread
from earshot_server.processes.errands import HelperErrands
from earshot_server.records import MOST_TRIES, Trouble
from earshot_server.store.database import Database, DatabaseUnavailableError
from earshot_server.store.driving import Driving
from earshot_server.store.errands import Errands
from earshot_server.store.interface import StepTakenError
from earshot_server.store.postgres import LostLeaseError, PostgresPhaseStore
from earshot_server.store.registry import Gathering, Registry

LEASE_SECONDS = 60.0
_RENEWALS = 3
"""Number of renewals within the duration of a lease."""
LONGEST_PAUSE = 30.0
"""Longest pause between turns after failures, in seconds."""
PURGE_EVERY = 3600.0

_TOLD_EVERY = 5.0
"""Seconds between two records that this driver is alive."""

PHASE_BYTES = 16
"""Bytes of a phase's identifier; troubles of a campaign have so many of its digest's."""

_log = logging.getLogger(__name__)


class Driver:
    """Driver that moves all phases of one database on.

    Args:
        database: Database of the phases.
        discovery: Method that finds global centroids.
        keep_seconds: Seconds for which members and snapshots of a phase are kept after its end.
        lease_seconds: Seconds after which others take over from a driver that has died.
        errands: Requests to the helper of sums by two operators; None if the server leads none.
    """

    def __init__(
        self,
        database: Database,
        discovery: CentroidDiscovery,
        keep_seconds: float,
        lease_seconds: float = LEASE_SECONDS,
        errands: HelperErrands | None = None,
    ) -> None:
        self._database = database
        self._discovery = discovery
        self._keep_seconds = keep_seconds
        self._lease_seconds = lease_seconds
        self._errands = errands
        self._leading = None if errands is None else errands.keys
        self._owner = secrets.token_hex(8)
        self._store = PostgresPhaseStore(database, self._owner)
        self._registry = Registry(database)
        self._driving = Driving(database)
        self._campaigns = CampaignConductor(database, leads=errands is not None)
        self._coordinators: dict[bytes, Coordinator] = {}
        self._purged = -PURGE_EVERY
        self._told = -_TOLD_EVERY

    def run(self, stop: threading.Event, pause: float) -> None:
        """Take turns until stopped; failures are logged and tried again.

        Args:
            stop: Event that another thread or a signal handler sets.
            pause: Seconds between turns.
        """
        failures = 0
        while not stop.is_set():
            try:
                self.turn()
                failures = 0
            except DatabaseUnavailableError as error:
                failures += 1
                _log.error("the driver waits for its database: %s", error)
            except Exception:  # phones wait for the next turn, whatever failed
                failures += 1
                _log.exception("a turn of the driver failed")
            stop.wait(min(LONGEST_PAUSE, pause * 2 ** min(failures, 16)))

    def turn(self) -> int:
        """Do everything that is due, once.

        Returns:
            Number of gatherings ended, steps closed, and phases of campaigns opened.

        Raises:
            DatabaseUnavailableError: The database cannot be reached or written.
        """
        self._tell()
        now = self._database.now()
        postponed = self._driving.postponed()
        moved = sum(
            self._alone(gathering.phase, partial(self._end_gathering, gathering, now))
            for gathering in self._registry.gatherings()
            if gathering.phase not in postponed
        )
        moved += sum(
            self._alone(phase, partial(self._end_stopped, phase, reason))
            for phase, reason in self._registry.stopped()
            if phase not in postponed
        )
        running = self._store.running()
        self._coordinators = {
            phase: one for phase, one in self._coordinators.items() if phase in running
        }
        moved += sum(
            self._alone(phase, partial(self._go_on, phase, now))
            for phase in running
            if phase not in postponed
        )
        moved += sum(
            self._alone(digest[:PHASE_BYTES], partial(self._open_next, digest))
            for digest in self._campaigns.active()
            if digest[:PHASE_BYTES] not in postponed
        )
        if self._errands is not None:
            self._errands.begin()
        self._purge(now)
        return moved

    # -------------------------------------------------------------------- one phase alone

    def _alone(self, phase: bytes, move: Callable[[], bool]) -> bool:
        """Move one phase on, and record its errors so that they do not affect the others."""
        try:
            return move()
        except LostLeaseError as error:
            self._driving.lost_lease()
            _log.warning("work is discarded: %s", error, extra={"phase": phase.hex()})
        except StepTakenError as error:
            self._driving.clear(phase)
            _log.info("another process was faster: %s", error)
        except DatabaseUnavailableError as error:
            self._database.check()  # raises if all phases have this trouble
            self._in_trouble(phase, error, counts=False)
        except Exception as error:
            self._in_trouble(phase, error)
        return False

    def _in_trouble(self, phase: bytes, error: Exception, *, counts: bool = True) -> None:
        _log.error("a phase is in trouble", exc_info=error, extra={"phase": phase.hex()})
        self._driving.fail(phase, type(error).__name__, counts=counts)

    def _work(
        self, phase: bytes, work: Callable[[], bool], give_up: Callable[[str], object]
    ) -> bool:
        """Do what is due in a phase under its lease, or fail the phase after too many tries."""
        with leased(self._registry, phase, self._owner, self._lease_seconds) as held:
            if not held:
                return False
            trouble = self._driving.begin(phase)
            moved = True
            if trouble.attempts <= MOST_TRIES:
                moved = work()
            else:
                give_up(_why(trouble))
                _log.error("a phase is given up: %s", _why(trouble), extra={"phase": phase.hex()})
            self._driving.clear(phase)
        return moved

    def _go_on(self, phase: bytes, now: float) -> bool:
        """Close the present step of a phase if it is due."""
        step = self._store.present_step(phase).name

        def give_up(reason: str) -> None:
            end_unread(self._store, phase, f"{reason}, in the step '{step}'")

        coordinator = self._coordinators.get(phase)
        if coordinator is not None and not coordinator.due(now):
            return False
        return self._work(phase, partial(self._close, phase, now), give_up)

    def _close(self, phase: bytes, now: float) -> bool:
        coordinator = self._coordinators.get(phase)
        if coordinator is None:
            coordinator = Coordinator(self._store, self._discovery, phase, leading=self._leading)
            coordinator.check()
            self._coordinators[phase] = coordinator
        before, began = coordinator.step, time.monotonic()
        moved = coordinator.advance(now, self._database.now)
        if moved:
            _log.info(
                "step closed",
                extra={
                    "phase": phase.hex(),
                    "step": before,
                    "next": coordinator.step,
                    "seconds": round(time.monotonic() - began, 3),
                },
            )
        return moved

    def _end_gathering(self, gathering: Gathering, now: float) -> bool:
        """Start a phase with the phones that joined, once all have or the gathering is over."""
        waits = gathering.joined < gathering.wanted and now < gathering.until
        if waits and not gathering.ended:
            return False

        def begin() -> bool:
            if gathering.phase not in {each.phase for each in self._registry.gatherings()}:
                return False  # another driver has begun or ended it in the meantime
            try:
                self._start(gathering)
            except EarshotError as error:
                if isinstance(error, DatabaseUnavailableError | StepTakenError):
                    raise
                self._registry.end_gathering(gathering.phase, str(error))
                _log.warning("a phase does not start: %s", error)
            return True

        def give_up(reason: str) -> None:
            self._registry.end_gathering(gathering.phase, reason)

        return self._work(gathering.phase, begin, give_up)

    def _start(self, gathering: Gathering) -> None:
        joined = self._registry.end_gathering(gathering.phase)
        if joined < gathering.least:
            raise InvalidParametersError(
                f"{joined} phones have joined in time; at least {gathering.least} are needed"
            )
        Coordinator.start(
            self._store,
            self._discovery,
            msgspec.structs.replace(gathering.parameters, phones=joined),
            self._database.now(),  # another phase may have taken a while since the turn began
            phase=gathering.phase,
            choices=gathering.choices,
            leading=self._leading,
        )
        _log.info("phase started", extra={"phase": gathering.phase.hex(), "phones": joined})

    def _end_stopped(self, phase: bytes, reason: str) -> bool:
        """End a phase that was stopped, and delete its snapshot."""

        def end(reason: str) -> bool:
            return end_unread(self._store, phase, reason)

        return self._work(phase, partial(end, reason), end)

    def _open_next(self, digest: bytes) -> bool:
        """Open the next phase of a campaign if one is due."""
        opened = self._campaigns.turn(digest)
        if opened is not None:
            told = {"campaign": digest.hex(), "kind": opened.kind, "number": opened.number}
            _log.info("a campaign's phase gathers phones", extra=told)
            self._driving.clear(digest[:PHASE_BYTES])
        return opened is not None

    # ------------------------------------------------------------------------ now and then

    def _tell(self) -> None:
        if time.monotonic() - self._told >= _TOLD_EVERY:
            self._driving.turned(self._owner)
            self._told = time.monotonic()

    def _purge(self, now: float) -> None:
        if time.monotonic() - self._purged < PURGE_EVERY:
            return
        self._purged = time.monotonic()
        gone = self._registry.purge(now - self._keep_seconds)
        self._driving.purge(now - PURGE_EVERY)
        Errands(self._database).purge()
        if gone:
            _log.info("purged", extra={"phases": gone})


def _why(trouble: Trouble) -> str:
    """Return the reason for phones: only an error's name, as its message may hold anything."""
    return f"the server failed {trouble.attempts - 1} times ({trouble.reason})"


@contextmanager
def leased(registry: Registry, phase: bytes, owner: str, seconds: float) -> Iterator[bool]:
    """Hold the lease of a phase within the block.

    A separate thread renews the lease, so that it lasts through minutes of work and ends soon after
    its process. The lease is checked again in the transaction that opens a step, so a late renewal
    does no harm.

    Args:
        registry: Registry that keeps leases.
        phase: Identifier of the phase.
        owner: Unique name of the driver.
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
