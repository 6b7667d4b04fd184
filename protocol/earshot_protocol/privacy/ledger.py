"""The ledger of everything that a phone has ever released: append-only and chained by hashes.

Each entry keeps the event of a release, from which costs are composed, beside the (ε, δ) that its
user was shown, the day, and the SHA-256 of the entry before it, as encoded: every change to an
entry is detected. The caller stores new entries before the answer leaves, so that a crash can waste
budget but never overspend it. The chain does not show that its newest entries are missing; the
store guards its length.
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
from earshot_protocol.privacy.events import Event
from earshot_protocol.privacy.mechanisms import Cost, Unit

PHASE_BYTES = 16
GENESIS = bytes(32)
"""Hash that the first entry names as its predecessor."""
YEAR = timedelta(days=366)
"""Time for which a release counts against a yearly budget, the day of the release included."""


class DamagedLedgerError(LocalError):
    """Entries that are not the ones written: altered, reordered, inserted or cut out."""


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One release of one phase, its event, its day (UTC), and the hash of the entry before it."""

    phase: Annotated[bytes, Meta(min_length=PHASE_BYTES, max_length=PHASE_BYTES)]
    release: Release
    previous: Annotated[bytes, Meta(min_length=32, max_length=32)]
    event: Event
    day: date

    @property
    def expense(self) -> Expense:
        """The release with its event."""
        return Expense(self.release, self.event)


_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[Entry] = msgspec.msgpack.Decoder(Entry)


class Ledger:
    """Every release of a phone, in order.

    Args:
        entries: Encoded entries, oldest first, as `append` returned them.

    Raises:
        DamagedLedgerError: An entry does not decode, or does not follow the one before it.
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
    def days(self) -> tuple[date, ...]:
        """Days (UTC) on which something was released, in the order of the entries, each once."""
        return tuple(dict.fromkeys(entry.day for entry in self._entries))

    @property
    def events(self) -> tuple[tuple[Unit, Event], ...]:
        """Unit and event of every release, oldest first."""
        return tuple((entry.release.unit, entry.event) for entry in self._entries)

    def expenses_of(
        self, unit: Unit, *, phase: bytes | None = None, today: date | None = None
    ) -> tuple[Expense, ...]:
        """Return what was spent in one unit, oldest first: in a phase, in a year, or ever.

        An entry dated in the future counts as made today, and none counts as older than those
        before it: setting the clock back frees no budget.

        Args:
            unit: Unit in which releases are counted.
            phase: Phase of the releases; None for all phases.
            today: Last day, in UTC, of the year of the releases; None for releases of all years.
        """
        spent, latest = [], date.min
        for entry in self._entries:
            latest = max(latest, entry.day)
            old = today is not None and today - latest >= YEAR
            if entry.release.unit is unit and not old and phase in (None, entry.phase):
                spent.append(entry.expense)
        return tuple(spent)

    def releases_in(self, phase: bytes) -> tuple[Release, ...]:
        """Return the releases of one phase, oldest first."""
        return tuple(entry.release for entry in self._entries if entry.phase == phase)

    def append(self, phase: bytes, expenses: Iterable[Expense], day: date) -> tuple[bytes, ...]:
        """Record upcoming releases; store the result before anything leaves the phone.

        If storing fails, discard this ledger and read it again from the store.

        Args:
            phase: Identifier of the phase, 16 bytes.
            expenses: Costs of the phase's steps in each unit.
            day: Present day, in UTC.

        Returns:
            The encoded new entries, oldest first.

        Raises:
            InvalidInputError: There are no releases, or the ε or δ of one is not a cost.
            WrongStateError: One of these steps of this phase is recorded already; a step is
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
        """Return the cost of all releases, per unit (basic composition, thesis Theorem 8.3)."""
        return total(self.releases)

    def export(self) -> list[dict[str, Any]]:
        """Return the ledger for its user: one plain dictionary per release, oldest first."""
        return [
            {
                "number": number,
                "day": entry.day.isoformat(),
                "phase": entry.phase.hex(),
                "step": entry.release.step,
                "mechanism": entry.release.mechanism,
                "unit": entry.release.unit.value,
                "epsilon": entry.release.epsilon,
                "delta": entry.release.delta,
                "event": msgspec.to_builtins(entry.event),
            }
            for number, entry in enumerate(self._entries, start=1)
        ]

    def check_unreleased(self, phase: bytes, steps: Collection[str]) -> None:
        """Refuse to release a step of a phase twice.

        Raises:
            WrongStateError: One of these steps of this phase is recorded already.
        """
        recorded = {release.step for release in self.releases_in(phase)}
        repeated = recorded.intersection(steps)
        if repeated:
            raise WrongStateError(
                f"{', '.join(sorted(repeated))} of phase {phase.hex()} has been released already; "
                "a step is released once"
            )

    def _check_new(self, phase: bytes, releases: tuple[Release, ...]) -> None:
        if len(phase) != PHASE_BYTES:
            raise InvalidInputError(
                f"a phase of {len(phase)} bytes: an identifier has {PHASE_BYTES}"
            )
        if not releases:
            raise InvalidInputError("nothing to record: a step releases something in each unit")
        for release in releases:
            # Not-a-number fails these comparisons too; without noise, ε is infinite.
            if not (release.epsilon >= 0 and 0 <= release.delta <= 1):
                raise InvalidInputError(
                    f"ε={release.epsilon}, δ={release.delta} of {release.step!r}: ε must be at "
                    "least 0 and δ between 0 and 1"
                )
        self.check_unreleased(phase, {release.step for release in releases})


def intact(entries: Iterable[bytes]) -> int:
    """Count the entries, from the oldest, that are as written: each follows the one before it."""
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
    return entry


def _hash(encoded: bytes) -> bytes:
    return hashlib.sha256(encoded).digest()
