"""Store in PostgreSQL: any number of processes share it, and accepted answers are durable.

An answer is inserted under a share lock on its phase's row, which closing and replacing a step
update: once a step is closed, all acknowledged answers are visible, and no more are accepted.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any

from psycopg import errors

from earshot_protocol.errors import (
    InvalidInputError,
    RepeatedMessageError,
    UnexpectedMessageError,
)
from earshot_protocol.overriding import override
from earshot_protocol.phases.plan import FAILED
from earshot_protocol.secure_sum.interface import Saved
from earshot_server.store.database import Connection, Database
from earshot_server.store.interface import Assignment, PhaseStore, PresentStep, StepTakenError

_CHUNK_BYTES = 4 * 2**20
_CHUNK_ANSWERS = 4096
"""Limits on the answers in memory at a time; one larger than `_CHUNK_BYTES` is read alone."""


class LostLeaseError(StepTakenError):
    """Another driver has the phase's lease; the work done here is discarded."""


class PostgresPhaseStore(PhaseStore):
    """Store of phases in a migrated database, for any number of threads.

    Every method also raises `DatabaseUnavailableError`.

    Args:
        database: Database of the phases.
        owner: Owner of the lease that `create` and `replace` require: they raise `LostLeaseError`
            if it does not hold the lease. By default, no lease is required.
    """

    def __init__(self, database: Database, owner: str | None = None) -> None:
        self._database = database
        self._owner = owner

    @override
    def create(
        self, phase: bytes, snapshot: Saved, step: PresentStep, tasks: Iterable[tuple[int, bytes]]
    ) -> None:
        try:
            with self._database.transaction() as connection:
                self._check_lease(connection, phase)
                connection.execute(
                    "INSERT INTO phases (phase, number, step, deadline, expected,"
                    " common, sum, over, wait, finished) VALUES (%(phase)s,"
                    " %(number)s, %(step)s, %(deadline)s, %(expected)s,"
                    " %(common)s, %(sum)s, %(over)s, %(wait)s,"
                    " CASE WHEN %(over)s THEN seconds_now() END)",
                    _columns(phase, step),
                )
                connection.execute("INSERT INTO snapshots VALUES (%s, %b)", (phase, snapshot))
                _begin_step(connection, phase, step, tasks)
        except errors.UniqueViolation as error:
            raise InvalidInputError(f"phase {phase.hex()} exists already") from error

    @override
    def phases(self) -> tuple[bytes, ...]:
        rows = self._database.query("SELECT phase FROM phases ORDER BY position")
        return tuple(phase for (phase,) in rows)

    def running(self) -> tuple[bytes, ...]:
        """Return the phases that are not over, oldest first."""
        rows = self._database.query("SELECT phase FROM phases WHERE NOT over ORDER BY position")
        return tuple(phase for (phase,) in rows)

    @override
    def present_step(self, phase: bytes) -> PresentStep:
        rows = self._database.query(
            "SELECT number, step, deadline, expected, common, sum, over, wait"
            " FROM phases WHERE phase = %s",
            (phase,),
        )
        return PresentStep(*_only(rows, phase))

    @override
    def snapshot(self, phase: bytes) -> tuple[int, Saved]:
        """Return the number of the present step, and the snapshot taken at its start.

        Raises:
            InvalidInputError: There is no such phase, or its snapshot was deleted after its end.
        """
        rows = self._database.query(
            "SELECT number, snapshot FROM phases LEFT JOIN snapshots USING (phase)"
            " WHERE phase = %s",
            (phase,),
        )
        number, snapshot = _only(rows, phase)
        if snapshot is None:
            raise InvalidInputError(f"phase {phase.hex()} is over and its snapshot is deleted")
        return number, snapshot

    @override
    def assignment(self, phase: bytes, phone: int) -> Assignment:
        rows = self._database.query(
            "SELECT number, step, deadline, expected, common, sum, over, wait, closed,"
            " (SELECT task FROM tasks t WHERE t.phase = p.phase AND phone = %(phone)s),"
            " EXISTS (SELECT FROM answers a WHERE a.phase = p.phase AND phone = %(phone)s"
            "  AND a.number = p.number)"
            " FROM phases p WHERE phase = %(phase)s",
            {"phase": phase, "phone": phone},
        )
        *step, closed, task, answered = _only(rows, phase)
        return Assignment(PresentStep(*step), closed, task, answered)

    @override
    def add_answer(self, phase: bytes, number: int, phone: int, answer: bytes) -> None:
        rows = self._database.query(
            "WITH open AS (SELECT number, closed FROM phases WHERE phase = %(phase)s FOR SHARE),"
            " accepted AS (INSERT INTO answers (phase, number, phone, answer)"
            "  SELECT %(phase)s, number, %(phone)s, %(answer)b FROM open"
            "  WHERE number = %(number)s AND NOT closed"
            # A repeated answer is updated to itself and returned, unlike a different one.
            "  ON CONFLICT (phase, number, phone) DO UPDATE SET answer = answers.answer"
            "  WHERE answers.answer = excluded.answer RETURNING true)"
            " SELECT number, closed, EXISTS (SELECT FROM accepted) FROM open",
            {"phase": phase, "number": number, "phone": phone, "answer": answer},
        )
        present, closed, accepted = _only(rows, phase)
        if accepted:
            return
        if present != number or (closed and not self._has(phase, number, phone, answer)):
            raise UnexpectedMessageError(f"phone {phone}: an answer to a step that is over")
        if not closed:
            raise RepeatedMessageError(f"phone {phone} has answered this step")

    def _has(self, phase: bytes, number: int, phone: int, answer: bytes) -> bool:
        """Return whether the phone gave this answer to a closed step.

        Raises:
            RepeatedMessageError: It gave another one.
        """
        rows = self._database.query(
            "SELECT answer = %b FROM answers JOIN phases USING (phase, number)"
            " WHERE phase = %s AND phone = %s AND number = %s",
            (answer, phase, phone, number),
        )
        if rows and not rows[0][0]:
            raise RepeatedMessageError(f"phone {phone} has answered this step")
        return bool(rows)

    @override
    def answer_count(self, phase: bytes) -> int:
        rows = self._database.query(
            "SELECT (SELECT count(*) FROM answers a WHERE a.phase = p.phase"
            "  AND a.number = p.number)"
            " FROM phases p WHERE phase = %s",
            (phase,),
        )
        return int(_only(rows, phase)[0])

    @override
    def close(self, phase: bytes, number: int) -> None:
        rows = self._database.query(
            "WITH closing AS (UPDATE phases SET closed = true"
            "  WHERE phase = %(phase)s AND number = %(number)s AND NOT closed)"
            " SELECT true FROM phases WHERE phase = %(phase)s",
            {"phase": phase, "number": number},
        )
        _only(rows, phase)

    @override
    def answers(self, phase: bytes) -> Iterator[tuple[int, bytes]]:
        """Return the answers to the present step, read in chunks.

        The senders and lengths of all answers are read first, then some mebibytes of answers at a
        time, so that no transaction lasts as long as the caller's work on them.
        """
        return self._answers(phase, 0)

    @override
    def kept_answers(self, phase: bytes) -> Iterator[tuple[int, bytes]]:
        return self._answers(phase, 1)

    def _answers(self, phase: bytes, before: int) -> Iterator[tuple[int, bytes]]:
        """Return the answers to the step this many before the present one."""
        rows = self._database.query(
            "SELECT p.number, phone, octet_length(answer) FROM phases p"
            " LEFT JOIN answers a ON a.phase = p.phase AND a.number = p.number - %s"
            " WHERE p.phase = %s ORDER BY arrived",
            (before, phase),
        )
        number, *_ = _only(rows[:1], phase)
        lengths = [(phone, length) for _, phone, length in rows if phone is not None]
        return self._read(phase, number, before, _chunks(lengths))

    def _read(
        self, phase: bytes, number: int, before: int, chunks: Iterable[list[int]]
    ) -> Iterator[tuple[int, bytes]]:
        for phones in chunks:
            rows = self._database.query(
                "SELECT phone, answer FROM phases p JOIN answers a USING (phase)"
                " WHERE phase = %s AND p.number = %s AND a.number = p.number - %s"
                " AND phone = ANY(%s)",
                (phase, number, before, phones),
            )
            answers = dict(rows)
            del rows
            for phone in phones:
                if phone in answers:
                    yield phone, answers.pop(phone)

    @override
    def replace(
        self,
        phase: bytes,
        snapshot: Saved,
        step: PresentStep,
        tasks: Iterable[tuple[int, bytes]],
        *,
        keep_answers: bool = False,
    ) -> None:
        with self._database.transaction() as connection:
            self._check_lease(connection, phase)
            _check_stopped(connection, phase, step)
            replaced = connection.execute(
                "UPDATE phases SET number = %(number)s, step = %(step)s,"
                " deadline = %(deadline)s, expected = %(expected)s, common = %(common)s,"
                " sum = %(sum)s, over = %(over)s, wait = %(wait)s, closed = false,"
                " finished = CASE WHEN %(over)s THEN extract(epoch FROM now()) END"
                " WHERE phase = %(phase)s AND number = %(number)s - 1",
                _columns(phase, step),
            )
            if replaced.rowcount == 0:
                _refuse(connection, phase, step.number)
            connection.execute(
                "UPDATE snapshots SET snapshot = %b WHERE phase = %s", (snapshot, phase)
            )
            connection.execute(
                "UPDATE steps SET closed = extract(epoch FROM now()),"
                " answered = (SELECT count(*) FROM answers WHERE phase = %(phase)s"
                "  AND number = %(number)s - 1)"
                " WHERE phase = %(phase)s AND closed IS NULL",
                {"phase": phase, "number": step.number},
            )
            connection.execute(
                "DELETE FROM answers WHERE phase = %s AND number < %s",
                (phase, step.number - keep_answers),
            )
            connection.execute("DELETE FROM tasks WHERE phase = %s", (phase,))
            _begin_step(connection, phase, step, tasks)

    def _check_lease(self, connection: Connection, phase: bytes) -> None:
        """Check the lease, and lock it until the end of this transaction."""
        if self._owner is None:
            return
        leases = connection.execute(
            "SELECT FROM leases WHERE phase = %s AND owner = %s FOR UPDATE", (phase, self._owner)
        )
        if leases.rowcount == 0:
            raise LostLeaseError(f"another driver has taken over phase {phase.hex()}")


def _check_stopped(connection: Connection, phase: bytes, step: PresentStep) -> None:
    """Lock the phase against being stopped during this transaction.

    Raises:
        StepTakenError: It has been stopped, and the step is not its failure.
    """
    rows = connection.execute("SELECT failure FROM gatherings WHERE phase = %s FOR SHARE", (phase,))
    for (failure,) in rows:
        if failure is not None and step.name != FAILED:
            raise StepTakenError(f"phase {phase.hex()}: {failure}")


def _chunks(lengths: Iterable[tuple[int, int]]) -> Iterator[list[int]]:
    """Yield groups of phones whose answers, of these lengths, are read together."""
    chunk: list[int] = []
    size = 0
    for phone, length in lengths:
        if chunk and (size + length > _CHUNK_BYTES or len(chunk) == _CHUNK_ANSWERS):
            yield chunk
            chunk, size = [], 0
        chunk.append(phone)
        size += length
    if chunk:
        yield chunk


def _begin_step(
    connection: Connection, phase: bytes, step: PresentStep, tasks: Iterable[tuple[int, bytes]]
) -> None:
    if not step.over:
        connection.execute(
            "INSERT INTO steps (phase, number, step, expected) VALUES (%s, %s, %s, %s)",
            (phase, step.number, step.name, step.expected),
        )
    with connection.cursor().copy(
        "COPY tasks (phase, phone, task) FROM STDIN (FORMAT BINARY)"
    ) as copy:
        copy.set_types(["bytea", "int8", "bytea"])
        for phone, task in tasks:
            copy.write_row((phase, phone, task))


def _columns(phase: bytes, step: PresentStep) -> dict[str, object]:
    columns = {**dataclasses.asdict(step), "phase": phase}
    columns["step"] = columns.pop("name")
    return columns


def _only(rows: list[tuple[Any, ...]], phase: bytes) -> tuple[Any, ...]:
    if not rows:
        raise InvalidInputError(f"no phase {phase.hex()}")
    return rows[0]


def _refuse(connection: Connection, phase: bytes, number: int) -> None:
    rows = connection.execute("SELECT number FROM phases WHERE phase = %s", (phase,)).fetchall()
    raise StepTakenError(
        f"step {number} cannot follow step {_only(rows, phase)[0]}: another process was faster"
    )
