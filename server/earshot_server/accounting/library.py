"""Adapters to dp-accounting: our events as its events, and an accountant that takes them."""

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
    """One release as ledgers record it; a sum counts as if its summation were ideal."""

    event: Event


class EventAccountant(RdpAccountant):  # type: ignore[misc]
    """The library's Rényi accountant, which also takes `ProtocolEvent`."""

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
