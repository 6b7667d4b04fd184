"""What a simulated campaign keeps after each phase, so that it can go on from there."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from earshot_protocol.errors import InvalidInputError
from earshot_protocol.files import replace_file
from earshot_server.campaigns.plan import CampaignPlan
from earshot_simulations.campaigns.settings import CampaignSettings
from earshot_simulations.engine.states import NO_ROOM, NoRoomError
from earshot_simulations.phases.settings import BLOBS, Settings
from earshot_simulations.versions import file_digest

STATE = "campaign.state"
_FREE = ("jobs",)
"""Settings that may change when a simulation goes on."""
T = TypeVar("T")


class KeptCampaign:
    """The file that keeps a simulated campaign.

    Args:
        folder: Existing folder of the file.
        plan: Plan of the campaign.
        settings: Settings of the simulation.
    """

    def __init__(self, folder: Path, plan: CampaignPlan, settings: CampaignSettings) -> None:
        self._file = folder / STATE
        self._made_by = _made_by(plan, settings)

    def keep(self, state: Any, phones: dict[int, bytes]) -> None:
        """Write what there is after a phase.

        Raises:
            NoRoomError: The disk is full.
        """
        content = msgspec.msgpack.encode((self._made_by, state, phones))
        try:
            replace_file(self._file, content, mode=0o600)
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            raise NoRoomError(
                f"{self._file}: no room for {len(content) / 2**20:,.0f} MB, which keep the "
                "campaign; make room, or name a folder of a larger disk"
            ) from None

    def read(self, kind: type[T]) -> tuple[T, dict[int, bytes]] | None:
        """Return what was kept; None if nothing was.

        Raises:
            InvalidInputError: The file is damaged, or keeps another simulation; the message names
                what differs.
        """
        try:
            content = self._file.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise InvalidInputError(f"{self._file}: cannot be read ({error.strerror})") from None
        made_by = self._decoded(content, Any, Any)[0]
        differs = [
            name
            for name in {**made_by, **self._made_by}
            if made_by.get(name) != self._made_by.get(name)
        ]
        if differs:
            then, now = made_by.get(differs[0]), self._made_by.get(differs[0])
            raise InvalidInputError(
                f"{self._file}: keeps a simulation with another {differs[0]} ({then}, now {now}); "
                "go on with the same, or name another folder"
            )
        _, state, phones = self._decoded(content, kind, dict[int, bytes])
        return state, phones

    def _decoded(self, content: bytes, state: Any, phones: Any) -> tuple[dict[str, Any], Any, Any]:
        try:
            found: tuple[dict[str, Any], Any, Any] = msgspec.msgpack.decode(
                content, type=tuple[dict[str, Any], state, phones]
            )
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            raise InvalidInputError(f"{self._file}: is damaged; remove it to begin anew") from None
        return found


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
