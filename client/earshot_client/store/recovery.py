"""Recovery of a phone's damaged ledger: readable entries stay, lost ones count as infinite cost.

How much is missing is unknown, and a guess would free budget. So one entry of (∞, 1) in every unit
is booked for it, which exceeds the yearly budgets for a year and the lifetime budgets for good.
Hearing and naming scenes continue.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from earshot_client.store.encrypted import EncryptedStore, begin_ledger, put_ledger_length
from earshot_client.store.interface import (
    EMBEDDING_DIMENSIONS,
    DamagedStoreError,
    StoreUnavailableError,
)
from earshot_client.store.rows import unpack_count
from earshot_client.store.sealed_file import SealedFile
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.files import made_whole
from earshot_protocol.privacy.accounting import Expense, Release
from earshot_protocol.privacy.events import Approximate
from earshot_protocol.privacy.ledger import PHASE_BYTES, Ledger, intact
from earshot_protocol.privacy.mechanisms import LEDGER_UNITS

LOST = "lost entries"
"""Step of the entry for lost entries in a recovered ledger."""
_MECHANISM = "unknown: the ledger was damaged"
_TABLES = {"recordings": "id", "named_values": "name"}


class Recovery(NamedTuple):
    """Findings of a recovery.

    Attributes:
        kept: Number of the ledger's entries that could be read.
        lost: Whether any part of the ledger could not be read.
        aside: Path of the file that could not be opened at all; None if it could.
    """

    kept: int
    lost: bool
    aside: Path | None = None


def recover_ledger(
    path: str | os.PathLike[str],
    key: bytes,
    *,
    dimensions: int = EMBEDDING_DIMENSIONS,
    clock: Callable[[], float] = time.time,
) -> Recovery:
    """Repair a phone's damaged file, without freeing any budget.

    An intact file stays unchanged. In a damaged one the ledger keeps its entries up to the first
    damaged one; anything else that cannot be unsealed is removed. A file that is no longer a store
    is put aside and replaced by a new one. In both cases the ledger then ends with an entry for
    everything that may be missing.

    Args:
        path: Path of the file; no process may have it open.
        key: 32 secret bytes, with which the file was made.
        dimensions: Dimensions of the embeddings in the file.
        clock: Clock of the seconds since 1970.

    Raises:
        InvalidInputError: There is no such file.
        WrongKeyError: The file was made with another key.
        NewerStoreError: A newer version of this software wrote the file.
        StoreUnavailableError: The file is in use, or cannot be read and written.
    """
    place = Path(path)
    if not place.is_file():
        raise InvalidInputError(f"{place}: there is no phone's file to recover")
    try:
        recovery = _recovered(place, key, dimensions, clock)
    except DamagedStoreError:
        recovery = _replaced(place, key, dimensions, clock)
    EncryptedStore(place, key, dimensions=dimensions).close()  # whole now, or this raises
    return recovery


def _replaced(place: Path, key: bytes, dimensions: int, clock: Callable[[], float]) -> Recovery:
    """Put a file aside that is no longer a store, and replace it by a new one.

    Whenever the process ends, either the damaged file or the recovered one exists, never a new one
    with an empty ledger.
    """
    fresh, aside = place.with_name(f"{place.name}.recovered"), _free_name(place)
    try:
        fresh.unlink(missing_ok=True)  # left over from a recovery that was killed
        recovery = _recovered(fresh, key, dimensions, clock, lost=True)
        with made_whole(aside) as copy:
            shutil.copyfile(place, copy)
        with contextlib.suppress(FileNotFoundError):  # or it would be rolled back into the new one
            os.replace(f"{place}-journal", f"{aside}-journal")
        os.replace(fresh, place)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{fresh}-journal")
    except OSError as error:
        raise StoreUnavailableError(f"{place} cannot be put aside: {error}") from error
    return recovery._replace(aside=aside)


def _recovered(
    place: Path, key: bytes, dimensions: int, clock: Callable[[], float], lost: bool = False
) -> Recovery:
    """Recover the ledger of a file that is a store; `lost` if the file is new."""
    file = SealedFile(place, key, dimensions, begin_ledger)
    with contextlib.closing(file), file.transaction():
        _drop_unreadable(file)
        entries, whole = _readable(file)
        if whole and not lost:
            return Recovery(len(entries), lost=False)
        file.rows("DELETE FROM ledger")
        today = datetime.fromtimestamp(clock(), UTC).date()
        added = Ledger(entries).append(os.urandom(PHASE_BYTES), _everything(), today)
        for number, entry in enumerate((*entries, *added), start=1):
            sealed = file.seal("ledger", number, entry)
            file.rows("INSERT INTO ledger VALUES (?, ?)", number, sealed)
        file.rows("DELETE FROM ledger_length")
        put_ledger_length(file, len(entries) + len(added))
        return Recovery(len(entries), lost=True)


def _everything() -> tuple[Expense, ...]:
    """Return more expenses than any budget holds, in each unit."""
    infinite = float("inf")
    return tuple(
        Expense(Release(LOST, unit, infinite, 1.0, _MECHANISM), Approximate(infinite, 1.0))
        for unit in LEDGER_UNITS
    )


def _readable(file: SealedFile) -> tuple[tuple[bytes, ...], bool]:
    """Return entries up to the first damaged one, and whether they are all."""
    rows = file.rows("SELECT id, sealed FROM ledger ORDER BY id")
    entries: list[bytes] = []
    with contextlib.suppress(DamagedStoreError):
        for place, (number, sealed) in enumerate(rows, start=1):
            if number != place:
                break
            entries.append(file.unseal("ledger", number, sealed))
    kept = tuple(entries[: intact(entries)])
    said: list[int] = []
    with contextlib.suppress(DamagedStoreError):
        for (sealed,) in file.rows("SELECT sealed FROM ledger_length"):
            said.append(unpack_count(file.unseal("ledger_length", 1, sealed)))
    return kept, said == [len(kept)] == [len(rows)]


def _drop_unreadable(file: SealedFile) -> None:
    """Remove damaged recordings and values, which cannot be read."""
    for table, row_name in _TABLES.items():
        # S608: names of our own tables.
        for row, sealed in file.rows(f"SELECT {row_name}, sealed FROM {table}"):  # noqa: S608
            try:
                file.unseal(table, row, sealed)
            except DamagedStoreError:
                file.rows(f"DELETE FROM {table} WHERE {row_name} = ?", row)  # noqa: S608


def _free_name(place: Path) -> Path:
    """Return an unused name beside the file."""
    number = 1
    while (aside := place.with_name(f"{place.name}.damaged-{number}")).exists():
        number += 1
    return aside
