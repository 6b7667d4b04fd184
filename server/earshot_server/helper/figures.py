"""Metrics of a helper's sums, read whenever Prometheus scrapes them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from earshot_protocol.two_operators.refusals import HelperRefusalError, UnknownLeaderError
from earshot_server.api.figures import counters, gauge, gauges
from earshot_server.helper.folder import HelperFolder

if TYPE_CHECKING:
    from prometheus_client import Metric

_REFUSALS = sorted(
    each.name.replace("_", "-")
    for each in HelperRefusalError.__subclasses__()
    if each is not UnknownLeaderError  # anyone could increase its count
)


class HelperFigures:
    """Collector for Prometheus' client.

    Args:
        folder: Helper whose sums are counted.
    """

    def __init__(self, folder: HelperFolder) -> None:
        self._folder = folder

    def describe(self) -> Iterator[Metric]:
        """Describe nothing, so that registering does not query the database."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """Yield the present metrics."""
        now = time.time()
        counts, kept = self._folder.book.counts(now), self._folder.book.kept(now)
        by_state = (((state,), count) for state, count in counts._asdict().items())
        yield gauges("earshot_helper_sums", "Sums offered, by state", ("state",), by_state)
        yield gauges(
            "earshot_helper_kept",
            "Keys of open sums, totals, and sums that are spent for good",
            ("what",),
            (((what,), each.count) for what, each in kept.items()),
        )
        yield gauges(
            "earshot_helper_kept_seconds",
            "Seconds for which the oldest of these has been kept",
            ("what",),
            (
                ((what,), 0.0 if each.since is None else max(0.0, now - each.since))
                for what, each in kept.items()
            ),
        )
        late = self._folder.book.late_keys(now)
        yield gauge("earshot_helper_late_keys", "Keys that should have been erased", late)
        leaders = len(self._folder.leaders.policies())
        yield gauge("earshot_helper_leaders", "Leaders that are served", leaders)
        refused = dict.fromkeys(_REFUSALS, 0) | self._folder.leaders.refusals()
        yield counters("earshot_helper_refusals", "Requests refused", "name", refused)
