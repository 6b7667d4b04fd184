"""What a simulated campaign keeps after each phase, so that it can go on from there."""

from __future__ import annotations

import zlib
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from earshot_protocol.errors import InvalidInputError
from earshot_protocol.files import OWNER_ONLY, replace_file
from earshot_server.campaigns.plan import CampaignPlan
from earshot_simulations.campaigns.settings import CampaignSettings
from earshot_simulations.engine.states import NO_ROOM, NoRoomError
from earshot_simulations.phases.settings import BLOBS, Settings
from earshot_simulations.versions import file_digest

STATE = "campaign.state"
"""Folder of the files."""
_FREE = ("jobs",)
"""Settings that may change when a simulation goes on."""
T = TypeVar("T")


class _Saved(NamedTuple):
    """A phone's store as `MemoryStore.to_bytes` saves it.

    Attributes:
        values: Named values.
        ledger: Entries of the ledger, oldest first; in a file, those that the phase added.
        counted: Numbers of counted recordings.
    """

    values: msgspec.Raw
    ledger: list[bytes]
    counted: msgspec.Raw


class _Changed(NamedTuple):
    """A phone after a phase.

    Attributes:
        entries: Number of ledger entries that the files before have; 0 for a new phone.
        saved: Its store, without these.
    """

    entries: int
    saved: _Saved


class _PhaseFile(NamedTuple):
    made_by: dict[str, Any]
    state: msgspec.Raw
    phones: dict[int, _Changed]


class KeptCampaign:
    """The folder that keeps a simulated campaign: a file for each phase, with what it changed.

    A ledger is most of a phone's store, and only grows.

    Args:
        folder: Existing folder, in which that one is made.
        plan: Plan of the campaign.
        settings: Settings of the simulation.
    """

    def __init__(self, folder: Path, plan: CampaignPlan, settings: CampaignSettings) -> None:
        self._folder = folder / STATE
        self._made_by = _made_by(plan, settings)
        self._phases = 0
        self._ledgers: dict[int, tuple[int, bytes]] = {}
        """Number of entries in each phone's ledger, and the last one."""

    def keep(self, state: Any, phones: dict[int, bytes]) -> None:
        """Write what there is after a phase.

        Args:
            state: What there is but for the phones.
            phones: Their stores, as `MemoryStore.to_bytes` saves them.

        Raises:
            NoRoomError: The disk is full.
        """
        stores = {
            phone: msgspec.msgpack.decode(store, type=_Saved) for phone, store in phones.items()
        }
        changed = {phone: self._changed(phone, saved) for phone, saved in stores.items()}
        encoded = msgspec.msgpack.encode((self._made_by, state, changed))
        content = zlib.compress(encoded, zlib.Z_BEST_SPEED)
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            replace_file(self._folder / str(self._phases), content, OWNER_ONLY)
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            raise NoRoomError(
                f"{self._folder}: no room for {len(content) / 2**20:,.0f} MB, which keep a phase; "
                "make room, or name a folder of a larger disk"
            ) from None
        self._phases += 1
        self._ledgers = _ends(stores)

    def _changed(self, phone: int, saved: _Saved) -> _Changed:
        entries, last = self._ledgers.get(phone, (0, b""))
        # Each entry has the hash of the one before it: if one is the same, so are those before it.
        # Otherwise the phone has left, and another one has its number.
        if saved.ledger[entries - 1 : entries] != [last]:
            return _Changed(0, saved)
        return _Changed(entries, saved._replace(ledger=saved.ledger[entries:]))

    def read(self, kind: type[T]) -> tuple[T, dict[int, bytes]] | None:
        """Return what was kept, after which the next phase is kept; None if nothing was.

        Raises:
            InvalidInputError: A file is damaged, or keeps another simulation; the message names
                what differs.
        """
        state: T | None = None
        stores: dict[int, _Saved] = {}
        while (content := self._content()) is not None:
            try:
                found = msgspec.msgpack.decode(zlib.decompress(content), type=_PhaseFile)
                self._check(found.made_by)
                state = msgspec.msgpack.decode(found.state, type=kind)
                stores = {
                    phone: _whole(stores.get(phone), changed)
                    for phone, changed in found.phones.items()
                }
            except (zlib.error, msgspec.DecodeError, RecursionError, UnicodeDecodeError):
                raise InvalidInputError(
                    f"{self._folder}: is damaged; remove it to begin anew"
                ) from None
            self._phases += 1
        if state is None:
            return None
        self._ledgers = _ends(stores)
        return state, {phone: msgspec.msgpack.encode(saved) for phone, saved in stores.items()}

    def _content(self) -> bytes | None:
        """Return the file of the next phase; None if there is none yet."""
        try:
            return (self._folder / str(self._phases)).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise InvalidInputError(f"{self._folder}: cannot be read ({error.strerror})") from None

    def _check(self, made_by: dict[str, Any]) -> None:
        differs = [
            name
            for name in {**made_by, **self._made_by}
            if made_by.get(name) != self._made_by.get(name)
        ]
        if differs:
            then, now = made_by.get(differs[0]), self._made_by.get(differs[0])
            raise InvalidInputError(
                f"{self._folder}: keeps a simulation with another {differs[0]} ({then}, now "
                f"{now}); go on with the same, or name another folder"
            )


def _whole(before: _Saved | None, changed: _Changed) -> _Saved:
    """Return a phone's store, from that after the phase before and what changed."""
    known = before.ledger[: changed.entries] if before else []
    if len(known) < changed.entries:
        raise msgspec.DecodeError("a file before has too few entries")
    return changed.saved._replace(ledger=known + changed.saved.ledger)


def _ends(stores: dict[int, _Saved]) -> dict[int, tuple[int, bytes]]:
    """Return the number of entries in each ledger that has any, and the last one."""
    return {
        phone: (len(saved.ledger), saved.ledger[-1])
        for phone, saved in stores.items()
        if saved.ledger
    }


def _made_by(plan: CampaignPlan, settings: CampaignSettings) -> dict[str, Any]:
    """Return everything that a simulation depends on, by name."""
    told: dict[str, Any] = {
        name: str(value) if value is not None and not isinstance(value, int | float) else value
        for name, value in asdict(settings).items()
        if name not in _FREE
    }
    told["campaign"] = plan.digest
    if settings.contacts is not None:
        told["content of contacts"] = file_digest(settings.contacts)
    heard = Settings(data=settings.data, encoder=settings.encoder, seed=settings.seed)
    if settings.data != BLOBS:
        told |= {f"{name} of the sound": each for name, each in heard.provenance().items()}
    return told
