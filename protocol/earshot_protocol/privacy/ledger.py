"""What a phone has released, ever: append-only, and chained so that no entry can change unseen.

Each entry keeps the event that a release was, for whoever composes them, beside the (ε, δ) that its
user was shown, the day, and the SHA-256 of the entry before it, as encoded. The caller stores new
entries before the answer leaves, so that a crash can waste budget but never overspend it. A chain
cannot tell that its newest entries are missing; whoever stores it guards its length.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from datetime import date, timedelta
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from earshot_protocol.errors import InvalidInputError, LocalError, WrongStateError
from earshot_protocol.privacy.accounting import Expense, Release, total
from earshot_protocol.privacy.events import Approximate, Event
from earshot_protocol.privacy.mechanisms import Cost, Unit

PHASE_BYTES = 16
GENESIS = bytes(32)
"""What the first entry names as its predecessor."""
YEAR = timedelta(days=366)
"""For so long a release counts against a yearly budget, the day on which it was made included."""


class DamagedLedgerError(LocalError):
    """Entries that are not the ones written: altered, reordered, inserted or cut out."""


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One release of one phase, its event, its day (UTC), and the hash of the entry before it.

    Entries of the first ledgers have no event, and later ones no day. They stay as they were
    written, because the chain holds their bytes together.
    """

    phase: Annotated[bytes, Meta(min_length=PHASE_BYTES, max_length=PHASE_BYTES)]
    release: Release
    previous: Annotated[bytes, Meta(min_length=32, max_length=32)]
    event: Event | None = None
    day: date | None = None

    @property
    def expense(self) -> Expense:
        """The release with its event; of an entry that has none, nothing is known but (ε, δ)."""
        known = self.event or Approximate(self.release.epsilon, self.release.delta)
        return Expense(self.release, known)


_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[Entry] = msgspec.msgpack.Decoder(Entry)


class Ledger:
    """Every release of a phone, in order.

    Args:
        entries: encoded entries, oldest first, as `append` returned them.

    Raises:
        DamagedLedgerError: an entry does not decode, or does not follow the one before it.
    """

    def __init__(self, entries: Iterable[bytes] = ()) -> None:
        self._entries: list[Entry] = []
        self._head = GENESIS
        for number, encoded in enumerate(entries, start=1):
            self._entries.append(_decode(number, encoded, self._head))
            self._head = _hash(encoded)

    @property
    def releases(self) -> tuple[Release, ...]:
        """All releases, oldest first."""
        return tuple(entry.release for entry in self._entries)

    @property
    def events(self) -> tuple[tuple[Unit, Event], ...]:
        """The unit and the event of every release, oldest first."""
        return tuple((entry.release.unit, entry.expense.event) for entry in self._entries)

    def expenses_of(
        self, unit: Unit, *, phase: bytes | None = None, today: date | None = None
    ) -> tuple[Expense, ...]:
        """What was spent in one unit, oldest first: in a phase, in a year, or ever.

        An entry without a day counts as if it was made today, and so does one of a day to come. No
        entry counts as older than those before it. So a clock that is set back frees nothing.

        Args:
            unit: in which releases are counted.
            phase: only what was released in this one.
            today: only what was released in the year that ends with this day, UTC.
        """
        spent, latest = [], date.min
        for entry in self._entries:
            latest = max(latest, entry.day or date.min)
            old = entry.day is not None and today is not None and today - latest >= YEAR
            if entry.release.unit is unit and not old and phase in (None, entry.phase):
                spent.append(entry.expense)
        return tuple(spent)

    def releases_in(self, phase: bytes) -> tuple[Release, ...]:
        """The releases of one phase, oldest first."""
        return tuple(entry.release for entry in self._entries if entry.phase == phase)

    def append(
        self, phase: bytes, expenses: Iterable[Expense], day: date | None
    ) -> tuple[bytes, ...]:
        """Record what is about to be released; store the result before anything leaves the phone.

        If storing fails, throw this ledger away and read it again from the store.

        Args:
            phase: identifier of the phase, 16 bytes.
            expenses: what its steps cost in each unit.
            day: today, in UTC; None if nobody knows.

        Returns:
            The encoded new entries, oldest first.

        Raises:
            InvalidInputError: no releases, or one whose ε or δ is not a cost.
            WrongStateError: one of these steps of this phase is recorded already; a step is
                released once.
        """
        expenses = tuple(expenses)
        self._check_new(phase, tuple(expense.release for expense in expenses))
        encoded = []
        for release, event in expenses:
            entry = Entry(phase, release, self._head, event, day)
            encoded.append(_encoder.encode(entry))
            self._entries.append(entry)
            self._head = _hash(encoded[-1])
        return tuple(encoded)

    def spent(self) -> dict[Unit, Cost]:
        """What all releases cost together, per unit (basic composition, thesis Theorem 8.3)."""
        return total(self.releases)

    def export(self) -> list[dict[str, Any]]:
        """The ledger for its user to read: one plain dictionary per release, oldest first."""
        return [
            {
                "number": number,
                "day": None if entry.day is None else entry.day.isoformat(),
                "phase": entry.phase.hex(),
                "step": entry.release.step,
                "mechanism": entry.release.mechanism,
                "unit": entry.release.unit.value,
                "epsilon": entry.release.epsilon,
                "delta": entry.release.delta,
                "event": msgspec.to_builtins(entry.expense.event),
            }
            for number, entry in enumerate(self._entries, start=1)
        ]

    def check_unreleased(self, phase: bytes, steps: Collection[str]) -> None:
        """Refuse to release a step of a phase twice.

        Raises:
            WrongStateError: one of these steps of this phase is recorded already.
        """
        recorded = {release.step for release in self.releases_in(phase)}
        repeated = recorded.intersection(steps)
        if repeated:
            raise WrongStateError(
                f"{', '.join(sorted(repeated))} of phase {phase.hex()} was released already; a "
                "step is released once"
            )

    def _check_new(self, phase: bytes, releases: tuple[Release, ...]) -> None:
        if len(phase) != PHASE_BYTES:
            raise InvalidInputError(
                f"a phase of {len(phase)} bytes: an identifier has {PHASE_BYTES}"
            )
        if not releases:
            raise InvalidInputError("nothing to record: a step releases something in each unit")
        for release in releases:
            if not _is_cost(release):
                raise InvalidInputError(
                    f"ε={release.epsilon}, δ={release.delta} of {release.step!r}: ε is at least 0 "
                    "and δ between 0 and 1"
                )
        self.check_unreleased(phase, {release.step for release in releases})


def intact(entries: Iterable[bytes]) -> int:
    """How many entries, from the oldest, are what was written: each follows the one before it."""
    head, count = GENESIS, 0
    for encoded in entries:
        try:
            _decode(count + 1, encoded, head)
        except DamagedLedgerError:
            break
        head, count = _hash(encoded), count + 1
    return count


def _decode(number: int, encoded: bytes, previous: bytes) -> Entry:
    try:
        entry = _decoder.decode(encoded)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise DamagedLedgerError(f"entry {number} of the ledger is unreadable: {error}") from error
    if entry.previous != previous:
        raise DamagedLedgerError(
            f"entry {number} of the ledger does not follow the one before it: entries were "
            "altered, reordered, inserted or cut out"
        )
    if not _is_cost(entry.release):
        raise DamagedLedgerError(f"entry {number} of the ledger holds no cost: {entry.release}")
    return entry


def _is_cost(release: Release) -> bool:
    # Not-a-number fails these comparisons too; an infinite ε is a cost, of a release without noise.
    return release.epsilon >= 0 and 0 <= release.delta <= 1


def _hash(encoded: bytes) -> bytes:
    return hashlib.sha256(encoded).digest()
