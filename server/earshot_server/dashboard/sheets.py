"""Tables of the dashboard as comma-separated values, for spreadsheets and statistics programs.

Numbers are as they were published, times are ISO 8601 in UTC.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from earshot_protocol.phases.discovery import Discovered
from earshot_protocol.phases.labelling import Labelled
from earshot_protocol.phases.learning import Result
from earshot_protocol.phases.plan import Outcome
from earshot_protocol.phases.statistics import Statistics
from earshot_server.dashboard import (
    outcomes,
    prototypes,
    refusals,
    samples,
    sentences,
    spending,
    tables,
)
from earshot_server.dashboard.changes import PER_PHONES
from earshot_server.dashboard.histograms import Histogram
from earshot_server.records import PhaseRecord
from earshot_server.sheet import Cell, Sheet


def phases(records: Iterable[PhaseRecord]) -> Sheet:
    """Return the table of all phases, one row each."""
    return Sheet(
        (
            *("phase", "kind", "status", "outcome", "joined", "wanted", "stayed", "started"),
            *("finished", "name", "cohorts"),
        ),
        tuple(
            (
                record.phase.hex(),
                record.parameters.kind,
                record.status,
                sentences.outcome(record),
                record.joined,
                record.wanted,
                sentences.stayed(record),
                _time(record.created),
                _time(record.finished),
                record.name,
                " ".join(record.cohorts),
            )
            for record in records
        ),
    )


def of_phase(record: PhaseRecord) -> dict[str, Sheet]:
    """Return the tables of one phase's page, by name."""
    sheets = {
        "participation": _participation(record),
        "privacy": _privacy(record),
        "parameters": Sheet(
            ("parameter", "symbol", "value"),
            tuple(
                (words, symbol, _text(value))
                for words, symbol, value in sentences.parameter_rows(record)
            ),
        ),
    }
    if record.refusals:
        refused: tuple[tuple[Cell, ...], ...] = refusals.rows(record.refusals)
        sheets["refusals"] = Sheet(("rule", "meaning", "phones"), refused)
    match record.ending:
        case Result() as result:
            sheets |= _environments(record, result)
        case Discovered() as found:
            sheets |= _prototypes(record, found)
        case Labelled() as labelled:
            sheets |= _samples(record, labelled)
        case Statistics() as statistics:
            sheets["histogram"] = _histogram(record, statistics)
            if statistics.confusion:
                sheets["confusion"] = _confusion(statistics)
        case Outcome() as outcome:
            sheets["outcome"] = Sheet(("name", "value"), tuple(outcomes.plain_rows(outcome)))
    return sheets


def spent(records: Iterable[PhaseRecord]) -> Sheet:
    """Return the table of the privacy cost of a phone that took part in all phases."""
    return Sheet(
        ("of", "phases", "unit", "epsilon", "delta"),
        tuple(
            (row.sort or "all phases", row.phases, str(unit), cost.epsilon, cost.delta)
            for row in spending.of_all(records)
            for unit, cost in row.spent.items()
        ),
    )


def over_time(published: Sequence[Histogram]) -> dict[str, Sheet]:
    """Return the tables of one kind of histogram over time, by name.

    Args:
        published: Histograms, oldest first.
    """
    shown = tables.over_time(published)
    rows = [
        (
            *(each.phase.hex(), _time(each.finished), each.inputs, label, each.what),
            *(count.published, each.radius, _yes(count.clear)),
        )
        for each in shown.histograms
        for label, count in each.counts.items()
    ]
    changes = shown.comparison.changes if shown.comparison else ()
    return {
        "counts": Sheet(_COUNTS, tuple(rows)),
        "changes": Sheet(
            ("label", *(f"{name} per {PER_PHONES} phones" for name in _CHANGES), "clear"),
            tuple(
                (each.label, each.before, each.now, each.difference, each.radius, _yes(each.clear))
                for each in changes
            ),
        ),
    }


_COUNTS = (
    *("phase", "published", "phones", "label", "what", "count", "noise"),
    "clear of the noise",
)
_CHANGES = ("before", "now", "change", "noise")


def _participation(record: PhaseRecord) -> Sheet:
    steps = tables.participation(record)
    asked = [step.record for step in steps if step.record and not step.helper]
    return Sheet(
        ("step", "asked", "answered", "opened", "closed"),
        tuple(
            (step.step, step.expected, step.answered, _time(step.opened), _time(step.closed))
            for step in asked
        ),
    )


def _privacy(record: PhaseRecord) -> Sheet:
    return Sheet(
        ("step", "mechanism", "unit", "epsilon", "delta", "paid"),
        tuple(
            (row.step, row.mechanism, str(unit), cost.epsilon, cost.delta, _yes(row.spent))
            for row in spending.of_phase(record).rows
            for unit, cost in row.costs.items()
        ),
    )


def _environments(record: PhaseRecord, result: Result) -> dict[str, Sheet]:
    found = tables.environments(record, result)
    return {
        "environments": Sheet(
            ("number", "label", *_VOTES),
            tuple(
                (
                    *(row.number, row.name, row.votes, found.vote_radius, row.doubt),
                    *(row.winning_votes, found.label_radius, row.why_unnamed),
                )
                for row in found.rows
            ),
        ),
        "label-votes": _label_votes(result.label_names, found.rows),
    }


def _prototypes(record: PhaseRecord, found: Discovered) -> dict[str, Sheet]:
    shown = prototypes.prototypes(record, found)
    return {
        "labels": Sheet(
            ("number", "label", "choice", "length", "noise", "p", "clear of the noise", "cells"),
            tuple(
                (
                    *(row.number, row.label, row.choice, row.length, shown.noise, row.p_value),
                    *(_yes(row.clear), row.numbers),
                )
                for row in shown.rows
            ),
        ),
        "cells": Sheet(
            ("number", "name", "may be", "moved", "length", "noise", "nobody named it"),
            tuple(
                (
                    *(f"c{cell.number}", cell.name, cell.doubtful, _yes(cell.moved)),
                    *(cell.length, shown.cell_noise, _yes(cell.nameless)),
                )
                for cell in shown.cells
            ),
        ),
    }


def _samples(record: PhaseRecord, labelled: Labelled) -> dict[str, Sheet]:
    shown = samples.samples(record, labelled)
    return {
        "samples": Sheet(
            ("number", "answer", "name", "agreement", "noise", "needed", "p"),
            tuple(
                (
                    *(row.number, row.answer, row.name, row.agreement, shown.check_radius),
                    *(labelled.threshold, row.p_value),
                )
                for row in shown.rows
            ),
        ),
        "label-votes": _label_votes(labelled.label_names, shown.rows),
    }


def _label_votes(
    labels: Sequence[str], rows: Iterable[samples.Sample | tables.Environment]
) -> Sheet:
    return Sheet(
        ("number", *labels),
        tuple((row.number, *(votes for votes, _ in row.label_votes)) for row in rows),
    )


_VOTES = (
    *("votes to keep it", "noise", "doubt"),
    *("votes for its label", "label noise", "why unnamed"),
)


def _histogram(record: PhaseRecord, published: Statistics) -> Sheet:
    return Sheet(
        (*("label", "published", "at least", "at most", "clear of the noise"), "labelled", "named"),
        tuple(
            (bar.label, *bar.counted[:3], _yes(bar.counted.clear), bar.labelled, bar.named)
            for bar in tables.histogram(record, published)
        ),
    )


def _confusion(published: Statistics) -> Sheet:
    names, deviation = published.label_names, published.deviation / published.contacts
    pairs = zip(itertools.product(names, names), published.confusion, strict=True)
    return Sheet(
        ("label", "name", "recordings", "standard deviation of the noise"),
        tuple((label, name, recordings, deviation) for (label, name), recordings in pairs),
    )


def _text(value: object) -> Cell:
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return value if isinstance(value, int | float) else str(value)


def _time(seconds: float | None) -> str | None:
    return None if seconds is None else f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"


def _yes(holds: bool) -> str:
    return "yes" if holds else "no"
