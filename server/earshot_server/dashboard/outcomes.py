"""Wording of the outcomes of each kind of phase, with a generic default."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from earshot_protocol.phases.discovery import Discovered, DiscoveryParameters
from earshot_protocol.phases.labelling import Labelled, LabellingParameters
from earshot_protocol.phases.learning import PhaseParameters, Result
from earshot_protocol.phases.named_centroids import NamedCentroids
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.phases.plan import Outcome
from earshot_protocol.phases.statistics import Statistics, StatisticsParameters
from earshot_protocol.wire import Ending
from earshot_server.dashboard import prototypes
from earshot_server.dashboard.wording import (
    UNNAMED,
    chance,
    counted,
    doubt,
    real,
    votes,
    whole,
    window,
)


@dataclass(frozen=True)
class Words:
    """Wording of an outcome.

    Attributes:
        short: Function that returns the outcome in a few words.
        achievement: Function that returns the end of a sentence that begins "3 of 4 phones".
        lines: Function that returns the whole outcome, for a terminal.
        figure: Function that returns the most important number with its name; None if there is
            none.
        nothing_found: Advice if enough phones answered a local release, but no result could be
            computed from it.
    """

    short: Callable[[Any], str]
    achievement: Callable[[Any], str]
    lines: Callable[[Any], list[str]]
    figure: Callable[[Any], tuple[str, int] | None]
    nothing_found: str = (
        "Enough phones answered, but no result could be computed from what they published. More "
        "phones or a larger budget reduce the noise."
    )


def words_for(parameters: Parameters) -> Words:
    """Return the wording for a phase with these parameters."""
    return _WORDS.get(type(parameters), _PLAIN)


def plain_rows(outcome: Outcome) -> list[tuple[str, str]]:
    """Return the fields of an outcome except phase and privacy, with their values in JSON."""
    return [
        (name.replace("_", " "), msgspec.json.encode(getattr(outcome, name)).decode())
        for name in outcome.__struct_fields__
        if name not in ("phase", "privacy")
    ]


def nothing_clear(outcome: Ending) -> str:
    """Return a sentence if nothing published is clear of the noise; empty otherwise."""
    said = ""
    if isinstance(outcome, Statistics) and not any(outcome.clear):
        said = "no count means anything"
    elif isinstance(outcome, Labelled) and not outcome.named:
        said = f"none of {counted(len(outcome.labels), 'sample')} has a label"
    elif isinstance(outcome, Discovered):
        if not outcome.named and not prototypes.nameless(outcome):
            said = f"none of {counted(len(outcome.label_names), 'label')} names anything"
    elif isinstance(outcome, NamedCentroids) and not any(outcome.names):
        said = f"none of {counted(len(outcome.names), 'place')} has a name"
    return said and f"nothing stands clear of the noise: {said}; a larger crowd would show more"


def _named(result: Result) -> str:
    environments = counted(result.centroids.rows, "environment")
    named = sum(name is not None for name in result.names)
    if named == result.centroids.rows:
        return f"stayed: they found and named {environments}"
    return f"stayed: they found {environments} and named {whole(named)}"


def why_unnamed(result: Result, row: int) -> str:
    """Return why a published centroid has no name: its leading label may be noise.

    Args:
        result: Result of a learning phase.
        row: Row of the centroid.

    Returns:
        The reason; empty if the centroid has a name.
    """
    leading = result.leading[row]
    if result.names[row] is not None or leading is None:
        return ""
    said = doubt(result.name_p_values[row])
    cast = votes(result.label_votes[row][leading])
    return f"{cast} votes for {result.label_names[leading]}, {said}"


def centroid_doubt(result: Result, row: int) -> str:
    """Return why the votes for a published centroid may be noise; empty if they are clear."""
    return doubt(result.centroid_p_values[row])


def _environments(result: Result) -> list[str]:
    return [
        f"environment {row + 1}: {_remarked(name or UNNAMED, why_unnamed(result, row))}, "
        + _remarked(f"{kept} votes", centroid_doubt(result, row))
        for row, (name, kept) in enumerate(zip(result.names, result.centroid_votes, strict=True))
    ]


def _contacts(published: Statistics) -> list[str]:
    counts = zip(published.label_names, published.contacts, published.p_values, strict=True)
    days = window(published.since, published.until)
    title = [f"contacts of {days} (UTC)"] if days else []
    lines = [f"{name}: {_remarked(str(count), doubt(p_value))}" for name, count, p_value in counts]
    return [*title, *lines]


def _remarked(said: str, remark: str) -> str:
    return f"{said} ({remark})" if remark else said


def _found(result: Result) -> str:
    named = sum(name is not None for name in result.names)
    found = counted(result.centroids.rows, "environment")
    return found if named == result.centroids.rows else f"{found}, {whole(named)} of them named"


def _discovered(found: Discovered) -> str:
    labels = counted(len(found.label_names), "label")
    without = len(prototypes.nameless(found))
    heard = f", and {counted(without, 'kind')} of place that nobody named" if without else ""
    return f"{whole(found.named)} of {labels} clear of the noise{heard}"


def _achieved(found: Discovered) -> str:
    labels = counted(len(found.label_names), "label")
    without = len(prototypes.nameless(found))
    heard = f", and found {counted(without, 'kind')} of place that nobody named" if without else ""
    return f"stayed: they gave {whole(found.named)} of {labels} a clear prototype{heard}"


def _prototypes(found: Discovered) -> list[str]:
    lines, rows = [], prototypes.rows(found)
    for row in rows:
        if not row.clear:
            continue
        many = "cell" if len(row.cells) == 1 else "cells"
        where = f", {many} {row.numbers}" if row.cells else ""
        choice = f", a choice of {row.label}" if row.choice else ""
        lines.append(f"{row.name}{choice}: length {votes(row.length)}{where}")
    lines += [
        f"{row.name}: not clear of the noise (p = {chance(row.p_value)}), so it names nothing"
        for row in rows
        if not row.clear
    ]
    lines += [
        f"cell c{cell.number}: a kind of place that nobody named, heard by about "
        f"{counted(round(cell.length), 'phone')} or more"
        for cell in prototypes.without_name(prototypes.cells(found))
    ]
    return [*lines, prototypes.reach(found)]


def _answered(labelled: Labelled) -> str:
    samples = counted(labelled.centroids.rows, "sample")
    answers = f"{whole(labelled.answered)} of {samples} labelled"
    doubtful = labelled.answered - labelled.named
    return f"{answers}; {whole(doubtful)} of the labels may be noise" if doubtful else answers


def _answers(labelled: Labelled) -> list[str]:
    return [f"sample {row + 1}: {answer_of(labelled, row)}" for row in range(len(labelled.labels))]


def answer_of(labelled: Labelled, row: int) -> str:
    """Return the outcome of a sample: its label and how many phones agree, or why it has none."""
    agreed = f"{whole(labelled.agreement[row])} agree"
    label = labelled.labels[row]
    if label < 0:
        return f"no answer ({agreed}; {real(labelled.threshold)} are needed)"
    remark = doubt(labelled.name_p_values[row])
    return _remarked(labelled.label_names[label], f"{agreed}; {remark}" if remark else agreed)


def _counted(published: Statistics) -> str:
    days = window(published.since, published.until)
    contacts = f"{whole(max(0, sum(published.contacts)))} contacts"
    return f"{contacts}, {days}" if days else contacts


def _contacts_figure(published: Statistics) -> tuple[str, int]:
    days = window(published.since, published.until)
    return f"contacts counted, {days}" if days else "contacts counted", sum(published.contacts)


_PLAIN = Words(
    short=lambda outcome: "published",
    achievement=lambda outcome: "stayed to the end",
    lines=lambda outcome: [f"{name}: {value}" for name, value in plain_rows(outcome)],
    figure=lambda outcome: None,
)
_WORDS: dict[type[Parameters], Words] = {
    PhaseParameters: Words(
        short=_found,
        achievement=_named,
        lines=_environments,
        figure=lambda result: ("environments found", result.centroids.rows),
        nothing_found=(
            "Enough phones answered, but what they published forms no groups. More phones, a "
            "larger budget for the clustering (--budget clustering=…) or fewer --local-centroids "
            "make groups clear of the noise."
        ),
    ),
    DiscoveryParameters: Words(
        short=_discovered,
        achievement=_achieved,
        lines=_prototypes,
        figure=lambda found: ("labels clear of the noise", found.named),
    ),
    LabellingParameters: Words(
        short=_answered,
        achievement=lambda labelled: f"stayed and voted: {_answered(labelled)}",
        lines=_answers,
        figure=lambda labelled: ("samples labelled", labelled.answered),
    ),
    StatisticsParameters: Words(
        short=_counted,
        achievement=lambda published: "stayed and counted their contacts",
        lines=_contacts,
        figure=_contacts_figure,
    ),
}
