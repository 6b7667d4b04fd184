"""Metrics of the database's content, read whenever Prometheus scrapes them.

Labels are kinds, steps, statuses, causes and reasons, of which there is a fixed number; never
phases, phones or operators.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from earshot_server.store.archive import Archive
from earshot_server.store.database import Database
from earshot_server.store.driving import Driving
from earshot_server.store.progress import PhaseProgress

if TYPE_CHECKING:
    from prometheus_client import Metric


class StoredFigures:
    """Collector for Prometheus' client.

    Args:
        database: Database whose content is counted.
    """

    def __init__(self, database: Database) -> None:
        self._archive = Archive(database)
        self._driving = Driving(database)
        self._progress = PhaseProgress(database)

    def describe(self) -> Iterator[Metric]:
        """Describe nothing, so that registering does not query the database."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """Yield the present metrics."""
        yield from self._sizes()
        yield from self._phases()
        yield from self._steps()
        yield from self._waits()
        yield from self._drivers()

    def _sizes(self) -> Iterator[Metric]:
        counts = self._archive.counts()
        yield gauge("earshot_phones", "Phones enrolled", counts.phones)
        yield gauge("earshot_database_bytes", "Size on disk", counts.database_bytes)
        yield counters("earshot_refusals", "Refusals of phones", "rule", counts.refusals)

    def _phases(self) -> Iterator[Metric]:
        progress = self._progress
        yield gauges(
            "earshot_phases", "Phases, by status", ("status",), _by_name(progress.statuses())
        )
        yield gauges(
            "earshot_phases_failed",
            "Phases that failed, by cause",
            ("cause",),
            _by_name(progress.failures()),
        )
        yield gauge(
            "earshot_phases_in_trouble", "Phases that could not be moved on", progress.in_trouble()
        )
        yield gauge(
            "earshot_overdue_seconds",
            "Seconds for which a step or a gathering has been overdue to end",
            progress.overdue(),
        )
        gatherings = progress.gatherings()
        yield gauges(
            "earshot_gathering_wanted",
            "Phones that may join",
            ("kind",),
            (((each.kind,), each.wanted) for each in gatherings),
        )
        yield gauges(
            "earshot_gathering_joined",
            "Phones that have joined",
            ("kind",),
            (((each.kind,), each.joined) for each in gatherings),
        )

    def _steps(self) -> Iterator[Metric]:
        steps = self._progress.steps()
        for name, text, attribute in (
            ("earshot_step_phases", "Phases at this step", "phases"),
            ("earshot_step_expected", "Phones that have a task", "expected"),
            ("earshot_step_answered", "Phones that have answered", "answered"),
            ("earshot_step_age_seconds", "Seconds since the oldest of these steps began", "age"),
            ("earshot_step_left_seconds", "Seconds until the first of their deadlines", "left"),
        ):
            yield gauges(
                name,
                text,
                ("kind", "step"),
                (((each.kind, each.step), getattr(each, attribute)) for each in steps),
            )

    def _waits(self) -> Iterator[Metric]:
        waits = self._progress.waits_for_helper()
        for name, text, attribute in (
            ("earshot_helper_awaited", "Phases that wait for the helper", "phases"),
            (
                "earshot_helper_awaited_seconds",
                "Seconds for which the first of them has waited",
                "age",
            ),
        ):
            yield gauges(
                name,
                text,
                ("kind", "step", "reason"),
                (((each.kind, each.step, each.reason), getattr(each, attribute)) for each in waits),
            )

    def _drivers(self) -> Iterator[Metric]:
        drivers = self._driving.drivers()
        yield gauge("earshot_drivers", "Drivers that took a turn in the last minute", drivers.alive)
        if drivers.seconds_since_turn is not None:
            yield gauge(
                "earshot_driver_turn_age_seconds",
                "Seconds since a driver last began a turn",
                drivers.seconds_since_turn,
            )
        yield counters(
            "earshot_driver_troubles",
            "Failed tries to move a phase on, and work lost with a lease",
            "what",
            {"failed": drivers.troubles, "lease-lost": drivers.lost_leases},
        )


def gauge(name: str, text: str, value: float) -> Metric:
    """Return a gauge without labels."""
    from prometheus_client.core import GaugeMetricFamily

    return GaugeMetricFamily(name, text, value)


def gauges(
    name: str,
    text: str,
    labels: tuple[str, ...],
    values: Iterable[tuple[tuple[str, ...], float]],
) -> Metric:
    """Return gauges, one for each set of labels."""
    from prometheus_client.core import GaugeMetricFamily

    family = GaugeMetricFamily(name, text, labels=labels)
    for named, value in values:
        family.add_metric(named, value)
    return family


def counters(name: str, text: str, label: str, values: Mapping[str, int]) -> Metric:
    """Return counters, one for each label."""
    from prometheus_client.core import CounterMetricFamily

    family = CounterMetricFamily(name, text, labels=(label,))
    for named, value in values.items():
        family.add_metric((named,), value)
    return family


def _by_name(values: Mapping[str, int]) -> list[tuple[tuple[str, ...], float]]:
    return [((name,), value) for name, value in values.items()]
