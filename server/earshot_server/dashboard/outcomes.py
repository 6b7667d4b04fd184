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
from earshot_protocol.privacy.significance import LEVEL
from earshot_protocol.wire import Ending
from earshot_server.dashboard import prototypes
from earshot_server.dashboard.languages import gettext as _
from earshot_server.dashboard.languages import ngettext, noted
from earshot_server.dashboard.wording import (
    UNKNOWN,
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
    nothing_found: str = noted(
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
    if isinstance(outcome, Statistics):
        clear = (*outcome.clear, outcome.unknown_p_value <= LEVEL)
        said = "" if any(clear) else _("no count means anything")
    elif isinstance(outcome, Labelled) and not outcome.named:
        said = ngettext(
            "none of %(number)s sample has a label",
            "none of %(number)s samples has a label",
            len(outcome.labels),
            number=whole(len(outcome.labels)),
        )
    elif isinstance(outcome, Discovered):
        if not outcome.named and not prototypes.nameless(outcome):
            said = ngettext(
                "none of %(number)s label names anything",
                "none of %(number)s labels names anything",
                len(outcome.label_names),
                number=whole(len(outcome.label_names)),
            )
    elif isinstance(outcome, NamedCentroids) and not any(outcome.names):
        said = ngettext(
            "none of %(number)s place has a name",
            "none of %(number)s places has a name",
            len(outcome.names),
            number=whole(len(outcome.names)),
        )
    if not said:
        return ""
    return _(
        "nothing stands clear of the noise: %(said)s; a larger crowd would show more", said=said
    )


def _named(result: Result) -> str:
    environments = counted(result.centroids.rows, "environment")
    named = sum(name is not None for name in result.names)
    if named == result.centroids.rows:
        return _("stayed: they found and named %(environments)s", environments=environments)
    return _(
        "stayed: they found %(environments)s and named %(named)s",
        environments=environments,
        named=whole(named),
    )


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
    label = result.label_names[leading]
    return _("%(votes)s votes for %(label)s, %(doubt)s", votes=cast, label=label, doubt=said)


def centroid_doubt(result: Result, row: int) -> str:
    """Return why the votes for a published centroid may be noise; empty if they are clear."""
    return doubt(result.centroid_p_values[row])


def _environments(result: Result) -> list[str]:
    rows = enumerate(zip(result.names, result.centroid_votes, strict=True))
    return [
        _(
            "environment %(number)s: %(name)s, %(votes)s",
            number=row + 1,
            name=_remarked(name or _(UNNAMED), why_unnamed(result, row)),
            votes=_remarked(_("%(number)s votes", number=kept), centroid_doubt(result, row)),
        )
        for row, (name, kept) in rows
    ]


def _contacts(published: Statistics) -> list[str]:
    days = window(published.since, published.until)
    title = [_("contacts of %(days)s (UTC)", days=days)] if days else []
    lines = [
        f"{name}: "
        + _remarked(
            _(
                "%(labelled)s labelled, %(named)s named by places",
                labelled=votes(labelled),
                named=votes(named),
            ),
            doubt(min(p_values)),
        )
        for name, labelled, named, *p_values in zip(
            published.label_names,
            published.labelled,
            published.named,
            published.labelled_p_values,
            published.named_p_values,
            strict=True,
        )
    ]
    unknown = _remarked(votes(published.unknown), doubt(published.unknown_p_value))
    spread = _(
        "noise on each number: standard deviation %(deviation)s",
        deviation=real(published.deviation),
    )
    return [*title, *lines, f"{_(UNKNOWN)}: {unknown}", spread]


def _remarked(said: str, remark: str) -> str:
    return f"{said} ({remark})" if remark else said


def _found(result: Result) -> str:
    named = sum(name is not None for name in result.names)
    found = counted(result.centroids.rows, "environment")
    if named == result.centroids.rows:
        return found
    return _("%(environments)s, %(named)s of them named", environments=found, named=whole(named))


def _discovered(found: Discovered) -> str:
    without = len(prototypes.nameless(found))
    said = ngettext(
        "%(named)s of %(number)s label clear of the noise",
        "%(named)s of %(number)s labels clear of the noise",
        len(found.label_names),
        named=whole(found.named),
        number=whole(len(found.label_names)),
    )
    heard = ngettext(
        "%(said)s, and %(number)s kind of place that nobody named",
        "%(said)s, and %(number)s kinds of place that nobody named",
        without,
        said=said,
        number=whole(without),
    )
    return heard if without else said


def _achieved(found: Discovered) -> str:
    without = len(prototypes.nameless(found))
    said = ngettext(
        "stayed: they gave %(named)s of %(number)s label a clear prototype",
        "stayed: they gave %(named)s of %(number)s labels a clear prototype",
        len(found.label_names),
        named=whole(found.named),
        number=whole(len(found.label_names)),
    )
    heard = ngettext(
        "%(said)s, and found %(number)s kind of place that nobody named",
        "%(said)s, and found %(number)s kinds of place that nobody named",
        without,
        said=said,
        number=whole(without),
    )
    return heard if without else said


def _prototypes(found: Discovered) -> list[str]:
    lines, rows = [], prototypes.rows(found)
    for row in rows:
        if not row.clear:
            continue
        named = _("%(name)s, a choice of %(label)s", name=row.name, label=row.label)
        line = _(
            "%(name)s: length %(length)s",
            name=named if row.choice else row.name,
            length=votes(row.length),
        )
        where = ngettext(
            "%(line)s, cell %(cells)s",
            "%(line)s, cells %(cells)s",
            len(row.cells),
            line=line,
            cells=row.numbers,
        )
        lines.append(where if row.cells else line)
    lines += [
        _(
            "%(name)s: not clear of the noise (p = %(chance)s), so it names nothing",
            name=row.name,
            chance=chance(row.p_value),
        )
        for row in rows
        if not row.clear
    ]
    for cell in prototypes.without_name(prototypes.cells(found)):
        phones = round(cell.length)
        lines.append(
            ngettext(
                "cell c%(cell)s: a kind of place that nobody named, heard by about %(number)s "
                "phone or more",
                "cell c%(cell)s: a kind of place that nobody named, heard by about %(number)s "
                "phones or more",
                phones,
                cell=cell.number,
                number=whole(phones),
            )
        )
    return [*lines, prototypes.reach(found)]


def _answered(labelled: Labelled) -> str:
    answers = ngettext(
        "%(answered)s of %(number)s sample labelled",
        "%(answered)s of %(number)s samples labelled",
        labelled.centroids.rows,
        answered=whole(labelled.answered),
        number=whole(labelled.centroids.rows),
    )
    doubtful = labelled.answered - labelled.named
    if not doubtful:
        return answers
    return _(
        "%(answers)s; %(number)s of the labels may be noise",
        answers=answers,
        number=whole(doubtful),
    )


def _answers(labelled: Labelled) -> list[str]:
    return [
        _("sample %(number)s: %(answer)s", number=row + 1, answer=answer_of(labelled, row))
        for row in range(len(labelled.labels))
    ]


def answer_of(labelled: Labelled, row: int) -> str:
    """Return the outcome of a sample: its label and how many phones agree, or why it has none."""
    agreed = _("%(number)s agree", number=whole(labelled.agreement[row]))
    label = labelled.labels[row]
    if label < 0:
        needed = real(labelled.threshold)
        return _("no answer (%(agreed)s; %(needed)s are needed)", agreed=agreed, needed=needed)
    remark = doubt(labelled.name_p_values[row])
    return _remarked(labelled.label_names[label], f"{agreed}; {remark}" if remark else agreed)


def _counted(published: Statistics) -> str:
    days = window(published.since, published.until)
    contacts = _("%(number)s contacts", number=whole(max(0, _all_contacts(published))))
    return f"{contacts}, {days}" if days else contacts


def _contacts_figure(published: Statistics) -> tuple[str, int]:
    days = window(published.since, published.until)
    words = _("contacts counted")
    return f"{words}, {days}" if days else words, _all_contacts(published)


def _all_contacts(published: Statistics) -> int:
    return round(sum(published.assigned) + published.unknown)


_PLAIN = Words(
    short=lambda outcome: _("published"),
    achievement=lambda outcome: _("stayed to the end"),
    lines=lambda outcome: [f"{name}: {value}" for name, value in plain_rows(outcome)],
    figure=lambda outcome: None,
)
_WORDS: dict[type[Parameters], Words] = {
    PhaseParameters: Words(
        short=_found,
        achievement=_named,
        lines=_environments,
        figure=lambda result: (_("environments found"), result.centroids.rows),
        nothing_found=noted(
            "Enough phones answered, but what they published forms no groups. More phones, a "
            "larger budget for the clustering (--budget clustering=…) or fewer --local-centroids "
            "make groups clear of the noise."
        ),
    ),
    DiscoveryParameters: Words(
        short=_discovered,
        achievement=_achieved,
        lines=_prototypes,
        figure=lambda found: (_("labels clear of the noise"), found.named),
    ),
    LabellingParameters: Words(
        short=_answered,
        achievement=lambda labelled: _(
            "stayed and voted: %(answers)s", answers=_answered(labelled)
        ),
        lines=_answers,
        figure=lambda labelled: (_("samples labelled"), labelled.answered),
    ),
    StatisticsParameters: Words(
        short=_counted,
        achievement=lambda published: _("stayed and counted their contacts"),
        lines=_contacts,
        figure=_contacts_figure,
    ),
}
