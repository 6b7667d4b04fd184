"""Our events as events of dp-accounting, and an accountant of its own that knows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dp_accounting.dp_event import DpEvent
from dp_accounting.privacy_accountant import PrivacyAccountant
from dp_accounting.rdp import RdpAccountant

from earshot_protocol.privacy.divergences import renyi
from earshot_protocol.privacy.events import Event


@dataclass(frozen=True)
class ProtocolEvent(DpEvent):  # type: ignore[misc]  # the library has no types
    """One release, as ledgers keep it; a sum counts as if its summation were ideal."""

    event: Event


class EventAccountant(RdpAccountant):  # type: ignore[misc]
    """Rényi accountant of the library that knows our events besides its own."""

    def __init__(self, orders: Sequence[float]) -> None:
        super().__init__(orders)

    def _maybe_compose(
        self, event: DpEvent, count: int, do_compose: bool
    ) -> PrivacyAccountant.CompositionErrorDetails | None:
        if not isinstance(event, ProtocolEvent):
            return super()._maybe_compose(event, count, do_compose)
        if do_compose:
            self._rdp += count * renyi(event.event, self._orders)
        return None
