"""Book of a helper on disk: records in a database, secrets in files beside it."""

from __future__ import annotations

import logging
import time
from typing import NamedTuple

import msgspec

from earshot_protocol.overriding import override
from earshot_server.helper.book import Book, Record, Secret, TakenError
from earshot_server.helper.database import HelperDatabase, HelperDatabaseError, named_errors
from earshot_server.helper.keys import KeyFolder, KeyFolderError
from earshot_server.store.database import DatabaseUnavailableError

KEPT_AFTER = 86_400.0
"""Seconds for which an offer and its total are kept after the time in which lists are answered.

A leader's clock may be an hour off, and a leader that lost an answer requests it again.
"""
_log = logging.getLogger(__name__)


class KeptByHelper(msgspec.Struct, frozen=True):
    """Number and age of the records of one kind that a helper keeps.

    Attributes:
        count: Number of records.
        since: Time of the oldest, in seconds since 1970; None without any.
    """

    count: int
    since: float | None


class SumCounts(NamedTuple):
    """Numbers of a helper's sums, by state.

    Attributes:
        open: Sums that wait for their list and have their key.
        answered: Sums that have their total.
        lapsed: Sums that cannot get one: too late, the key is gone, or too few reports opened.
    """

    open: int
    answered: int
    lapsed: int


class _Open(NamedTuple):
    """Sum that may still get its total: when it was offered, and when its key was created."""

    offered: float
    made: int


class SqliteBook(Book):
    """Book on disk, for any number of threads and processes.

    A key is written before its record, and erased after its total is stored. A process that is
    killed in between leaves a superfluous key, never a missing one, and `begin` erases it. Methods
    raise `DatabaseUnavailableError` while the disk cannot be read or written.

    Args:
        database: Database of the records.
        keys: Folder of the secrets.
    """

    def __init__(self, database: HelperDatabase, keys: KeyFolder) -> None:
        self._database = database
        self._keys = keys

    def begin(self, now: float) -> None:
        """Check that the keys are no copies, and erase those that are used or expired.

        Args:
            now: Time in seconds since 1970.

        Raises:
            KeyFolderError: Keys were copied or restored: their sums may have been answered.
        """
        with self._database.transaction():
            missing = not self._keys.path.exists()
            self._keys.make()
            self._check_keys(now)
            self._tidy(now)
        if missing and (lapsed := self.counts(now).lapsed):
            _log.warning("the folder of keys is new: %d sums get no total", lapsed)

    def _check_keys(self, now: float) -> None:
        copies = sum(
            self._keys.is_copy(sum_id, each.made) for sum_id, each in self._open_sums(now).items()
        )
        if copies:
            raise KeyFolderError(
                f"{self._keys.path} is a copy, or holds copies: of its keys, {copies} are not the "
                f"files that this helper made ({self._keys.why_copies()}), so their sums may have "
                "been answered. Remove the folder, and sums that were open end without a total"
            )

    def check(self) -> None:
        """Check that the database is readable and its schema up to date.

        Raises:
            DatabaseUnavailableError: It is not.
        """
        try:
            self._database.check()
        except HelperDatabaseError as error:
            raise DatabaseUnavailableError(str(error)) from error

    def write(self) -> None:
        """Probe that the database and the folder of keys are writable, and check the keys.

        Raises:
            DatabaseUnavailableError: One of them cannot be written, or a key is a copy.
        """
        try:
            with self._database.transaction():
                self._database.write()
                self._keys.write()
                self._check_keys(time.time())
        except KeyFolderError as error:
            raise DatabaseUnavailableError(str(error)) from error

    def tidy(self, now: float) -> None:
        """Erase expired keys.

        Args:
            now: Time in seconds since 1970.
        """
        with self._database.transaction():
            self._tidy(now)

    def _tidy(self, now: float) -> None:
        erased = self._keys.erase_others(self._open_sums(now))
        if erased:
            _log.info("superfluous keys were erased", extra={"files": erased})

    def forget(self, now: float) -> None:
        """Drop expired offers and totals; their sums can still not be offered again.

        Args:
            now: Time in seconds since 1970.
        """
        dropped = self._database.change(
            "UPDATE sums SET offer = NULL, total = CASE WHEN total = x'' THEN total END"
            " WHERE offer IS NOT NULL AND answer_until < ?",
            now - KEPT_AFTER,
        )
        if dropped:
            self._database.empty_log()
            _log.info("expired offers and totals were dropped", extra={"sums": dropped})

    def timely_sums(self, now: float) -> frozenset[bytes]:
        """Return the sums whose time for a list is not over, answered or not.

        Args:
            now: Time in seconds since 1970.
        """
        rows = self._database.rows(
            "SELECT sum_id FROM sums WHERE offer IS NOT NULL AND answer_until >= ?", now
        )
        return frozenset(sum_id for (sum_id,) in rows)

    def _open_sums(self, now: float) -> dict[bytes, _Open]:
        """Return the sums that may still get a total."""
        rows = self._database.rows(
            "SELECT sum_id, offered, made FROM sums WHERE reports IS NULL AND answer_until >= ?",
            now,
        )
        return {sum_id: _Open(*rest) for sum_id, *rest in rows}

    def counts(self, now: float) -> SumCounts:
        """Return the numbers of sums by state.

        Args:
            now: Time in seconds since 1970.
        """
        ((offered, answered),) = self._database.rows(
            "SELECT count(*), count(reports) FILTER (WHERE total IS NOT x'') FROM sums"
        )
        still = sum(self._keys.has(sum_id) for sum_id in self._open_sums(now))
        return SumCounts(still, answered, offered - answered - still)

    def kept(self, now: float) -> dict[str, KeptByHelper]:
        """Return number and age of what is stored: keys of open sums, totals, and all sums.

        Args:
            now: Time in seconds since 1970.
        """
        offered = [
            each.offered for sum_id, each in self._open_sums(now).items() if self._keys.has(sum_id)
        ]
        (totals,) = self._database.rows(
            "SELECT count(*), min(answered) FROM sums WHERE offer IS NOT NULL AND total > x''"
        )
        (sums,) = self._database.rows("SELECT count(*), min(offered) FROM sums")
        return {
            "keys": KeptByHelper(len(offered), min(offered, default=None)),
            "totals": KeptByHelper(*totals),
            "sums": KeptByHelper(*sums),
        }

    def late_keys(self, now: float) -> int:
        """Return the number of keys not of open sums; nonzero for at most a minute (`tidy`).

        Args:
            now: Time in seconds since 1970.
        """
        with named_errors():
            return len(self._keys.others(self._open_sums(now)))

    @override
    def offer(self, sum_id: bytes, record: Record, secret: Secret) -> None:
        # The transaction keeps two offers of one sum from mixing key and record.
        with self._database.transaction():
            if self._database.rows("SELECT 1 FROM sums WHERE sum_id = ?", sum_id):
                raise TakenError(f"sum {sum_id.hex()} has been offered")
            made = self._keys.keep(sum_id, secret)
            self._database.change(
                "INSERT INTO sums"
                " (sum_id, leader, request, digest, offered, answer_until, offer, made)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                *(sum_id, record.leader, record.request, record.digest),
                *(record.offered, record.answer_until, record.offer, made),
            )

    @override
    def record(self, sum_id: bytes) -> Record | None:
        rows = self._database.rows(
            "SELECT leader, request, digest, offered, answer_until, offer, reports, answered, total"
            " FROM sums WHERE sum_id = ?",
            sum_id,
        )
        return Record(*rows[0]) if rows else None

    @override
    def secret(self, sum_id: bytes) -> Secret | None:
        rows = self._database.rows("SELECT made FROM sums WHERE sum_id = ?", sum_id)
        with named_errors():
            return self._keys.secret(sum_id, rows[0][0]) if rows else None

    @override
    def answer(self, sum_id: bytes, reports: bytes, total: bytes, now: float) -> None:
        # If the database was restored under another process, the two use different files; only the
        # key folder is the same, so its lock decides.
        with named_errors(), self._keys.alone():
            with self._database.transaction():
                changed = self._database.change(
                    "UPDATE sums SET reports = ?, answered = ?, total = ?"
                    " WHERE sum_id = ? AND reports IS NULL AND offer IS NOT NULL",
                    *(reports, now, total, sum_id),
                )
                if not changed:
                    raise TakenError(f"sum {sum_id.hex()} has been answered")
                if self.secret(sum_id) is None:
                    raise TakenError(f"the key of sum {sum_id.hex()} is gone")
            self._keys.erase(sum_id)

    @override
    def erase(self, sum_id: bytes) -> None:
        with named_errors():
            self._keys.erase(sum_id)

    @override
    def offers_since(self, leader: bytes, moment: float) -> int:
        ((count,),) = self._database.rows(
            "SELECT count(*) FROM sums WHERE leader = ? AND offered >= ?", leader, moment
        )
        return int(count)
