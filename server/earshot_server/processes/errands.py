"""Errands to a helper: threads that send it its tasks, separate from the driver's turns.

A helper that is down, silent or slow delays only the phases that wait for it. Each errand holds the
lease of its phase for as long as it may take, so that no other process sends the same task
meanwhile; the lease expires even if the helper blocks a thread forever.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from earshot_protocol.errors import RemoteError, RepeatedMessageError, UnexpectedMessageError
from earshot_protocol.messages import Wait
from earshot_protocol.secure_sum.interface import HELPER
from earshot_protocol.two_operators.leader import LeaderKeys
from earshot_protocol.wire import Answer, Ending, Task
from earshot_server.helper_line import HelperLine, HelperTroubleError, patience
from earshot_server.phases.coordinator import Coordinator
from earshot_server.phases.ending import end_unread
from earshot_server.store.database import Database, DatabaseUnavailableError
from earshot_server.store.errands import Errands
from earshot_server.store.interface import StepTakenError
from earshot_server.store.postgres import PostgresPhaseStore
from earshot_server.store.registry import Registry

MOST_AT_ONCE = 8
"""Largest number of concurrent errands of a driver: more would not make a helper faster."""

_MARGIN = 30.0
"""Seconds by which a lease exceeds the longest duration of an errand."""

_log = logging.getLogger(__name__)


class HelperErrands:
    """Errands of one driver to one helper.

    Args:
        database: Database of the phases; an errand and its lease need a connection now and then.
        keys: Keys of the leader, with the helper's identity.
        line: Function that returns a client for the helper, for one errand.
        owner: Owner of the leases; unique, also different from the driver's own.
    """

    def __init__(
        self, database: Database, keys: LeaderKeys, line: Callable[[], HelperLine], owner: str
    ) -> None:
        self.keys = keys
        self._line = line
        self._owner = owner
        self._errands = Errands(database)
        self._registry = Registry(database)
        self._store = PostgresPhaseStore(database, owner)
        self._lock = threading.Lock()
        self._under_way = set[bytes]()

    def begin(self) -> None:
        """Start threads for the errands that are due, at most `MOST_AT_ONCE` at a time.

        Raises:
            DatabaseUnavailableError: The database cannot be reached.
        """
        for phase in self._errands.due():
            with self._lock:
                if len(self._under_way) >= MOST_AT_ONCE:
                    return
                if phase in self._under_way:
                    continue
                self._under_way.add(phase)
            # Errands need not be finished when the process ends.
            threading.Thread(target=self._run, args=(phase,), name="errand", daemon=True).start()

    def _run(self, phase: bytes) -> None:
        try:
            self._go(phase)
        except DatabaseUnavailableError as error:
            _log.error("an errand waits for its database: %s", error)
        except StepTakenError as error:
            _log.info("another process was faster: %s", error)
        except Exception:  # must not affect other phases
            _log.exception("an errand failed", extra={"phase": phase.hex()})
        finally:
            with self._lock:
                self._under_way.discard(phase)

    def _go(self, phase: bytes) -> None:
        if not self._registry.lease(phase, self._owner, _MARGIN):
            return
        try:
            coordinator = Coordinator(self._store, None, phase)
            task = coordinator.task_for(HELPER)
            if isinstance(task, Wait | Ending):
                return
            if self._registry.renew(phase, self._owner, patience(task) + _MARGIN):
                self._ask(coordinator, task)
        except HelperTroubleError as error:
            self._in_trouble(phase, error)
        except Exception as error:
            if not isinstance(error, DatabaseUnavailableError | StepTakenError):
                self._errands.fail(phase, type(error).__name__)
            raise
        finally:
            self._registry.release(phase, self._owner)

    def _ask(self, coordinator: Coordinator, task: Task) -> None:
        with self._line() as line:
            answer = line.answer(task)
        self._check(task, answer)
        try:
            coordinator.accept(HELPER, answer)
        except (RepeatedMessageError, UnexpectedMessageError) as error:
            _log.warning("the helper's answer comes too late: %s", error)
        self._errands.clear(coordinator.phase)
        _log.info("the helper has answered", extra={"phase": coordinator.phase.hex()})

    def _check(self, task: Task, answer: Answer) -> None:
        try:
            self.keys.check(task, answer, time.time())
        except RemoteError as error:
            raise HelperTroubleError(
                f"the helper sent an invalid answer: {error}", "wrong_answer"
            ) from error

    def _in_trouble(self, phase: bytes, error: HelperTroubleError) -> None:
        if error.final:
            _log.error(
                "a phase fails, as its helper refuses: %s", error, extra={"phase": phase.hex()}
            )
            end_unread(self._store, phase, f"the helper refuses this sum: {error.name}")
            self._errands.clear(phase)
        else:
            _log.warning("a phase waits for its helper: %s", error, extra={"phase": phase.hex()})
            self._errands.fail(phase, error.name, error.seconds)
