"""Sentences about a phase: its state, how it ended, what to do."""

from __future__ import annotations

from typing import Any

from earshot_protocol.messages import Failed
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.phases.places import UNNAMED, AgreedPlaces
from earshot_protocol.phases.plan import LocalRelease, Outcome, Step
from earshot_protocol.secure_sum.interface import Asks, SummationName
from earshot_protocol.wire import Matrix
from earshot_server.dashboard.histograms import agreed_parameters
from earshot_server.dashboard.languages import gettext as _
from earshot_server.dashboard.languages import gettext_among, ngettext, noted
from earshot_server.dashboard.outcomes import words_for
from earshot_server.dashboard.wording import (
    counted,
    from_now,
    printable,
    real,
    sentence,
    since,
    whole,
    window,
)
from earshot_server.records import (
    FAILED,
    GATHERING,
    RUNNING,
    STOPPED,
    PhaseRecord,
    StepRecord,
    Trouble,
)

_KINDS = {
    "discovery": noted("discovery phase"),
    "learning": noted("learning phase"),
    "labelling": noted("labelling phase"),
    "statistics": noted("statistics phase"),
}
_STEPS = frozenset(
    (
        *(noted("local centroids"), noted("cluster"), noted("select")),
        *(noted("centroid vote"), noted("label vote"), noted("cells"), noted("labels")),
        *(noted("votes"), noted("check"), noted("histogram")),
        *(noted("advertise keys"), noted("share keys"), noted("masked input"), noted("unmask")),
        *(noted("offer"), noted("report"), noted("total")),
    )
)
"""Names of the parts of a phase, and of the steps of a sum."""


ASKED_IN_VAIN = noted(
    "It was asked %(tries)s without success (%(reason)s) and is asked again %(when)s; the "
    "driver's log says why. The phones' answers are kept."
)
"""The outcome of requests to the helper."""


def kind(record: PhaseRecord) -> str:
    """Return the kind of phase, capitalized."""
    return sentence(kind_of_phase(record.parameters))


def kind_of_phase(parameters: Parameters) -> str:
    """Return the kind of phase, such as "discovery phase"."""
    return _(_KINDS.get(parameters.kind, f"{parameters.kind} phase"))


def step(name: str) -> str:
    """Return the name of a step, such as "cells 2: share keys", in the page's language."""
    words = (part.rpartition(" ") for part in name.split(": "))
    return ": ".join(
        f"{gettext_among(_STEPS, first)} {last}"
        if last.isdigit()
        else gettext_among(_STEPS, f"{first}{space}{last}")
        for first, space, last in words
    )


def name(record: PhaseRecord) -> str:
    """Return the phase's name in quotes; empty without a name."""
    return _("“%(name)s”", name=printable(record.name)) if record.name else ""


def short(phase: bytes) -> str:
    """Return the first digits of a phase's identifier, enough for people."""
    return phase.hex()[:8]


def all_steps(record: PhaseRecord) -> tuple[Step, ...]:
    """Return all steps of the phase's plan, in order, including those that ask the helper."""
    return record.parameters.plan().steps


def asks_helper(record: PhaseRecord, step: str) -> bool:
    """Return whether a step asks the helper of a sum by two operators, and no phone."""
    return record.parameters.plan().asks_helper(step)


def asked_steps(record: PhaseRecord) -> tuple[StepRecord, ...]:
    """Return the steps so far in which phones were asked."""
    names = {step.name for step in all_steps(record) if step.asks is not Asks.HELPER}
    return tuple(step for step in record.steps if step.step in names)


def present_step(record: PhaseRecord) -> StepRecord | None:
    """Return the step that waits for phones' answers; None if there is none."""
    steps = asked_steps(record)
    open_now = record.status == RUNNING and steps and steps[-1] is record.steps[-1]
    return steps[-1] if open_now else None


def helpers_step(record: PhaseRecord) -> StepRecord | None:
    """Return the step that waits for the helper; None if there is none."""
    last = record.steps[-1] if record.status == RUNNING and record.steps else None
    return last if last is not None and asks_helper(record, last.step) else None


def helped(step: StepRecord) -> str:
    """Return the state of a step that asks the helper."""
    if step.answered:
        return _("the helper answered")
    return _("waits for the helper") if step.closed is None else _("no answer from the helper")


def waiting(found: Trouble | None, step: StepRecord, now: float) -> str:
    """Describe since when a step waits for the helper, and the outcome of its requests."""
    said = _("Waiting for the helper %(since)s.", since=since(step.opened, now))
    if found is None:
        return said
    asked = _(
        ASKED_IN_VAIN,
        tries=counted(found.attempts, "time"),
        reason=found.reason,
        when=from_now(found.next_try, now),
    )
    return f"{said} {asked}"


def step_number(record: PhaseRecord) -> int:
    """Return the number of the step under way, from 1; 0 if there is none."""
    names = [step.name for step in all_steps(record)]
    return names.index(record.step) + 1 if record.step in names else 0


def least_answers(record: PhaseRecord) -> int:
    """Return how many phones must answer every step: a share 1 − ρ of those that joined."""
    return record.least_answers


def stayed(record: PhaseRecord) -> int:
    """Return how many phones answered the last closed step, or joined if no step has closed."""
    closed = [step for step in asked_steps(record) if step.closed is not None]
    return closed[-1].answered if closed else record.joined


def headline(record: PhaseRecord) -> str:
    """Return the state of the phase, or how it ended."""
    if record.status == GATHERING:
        return ngettext(
            "%(joined)s of %(number)s phone have joined",
            "%(joined)s of %(number)s phones have joined",
            record.wanted,
            joined=whole(record.joined),
            number=whole(record.wanted),
        )
    present = present_step(record)
    if present is not None:
        return ngettext(
            "%(answered)s of %(number)s phone have answered",
            "%(answered)s of %(number)s phones have answered",
            present.expected,
            answered=whole(present.answered),
            number=whole(present.expected),
        )
    if record.status == RUNNING:
        return _("Waiting for the helper")
    if record.status == STOPPED:
        return _("An operator stopped this phase")
    if record.status == FAILED:
        return _("This phase ended without a result")
    return ngettext(
        "%(stayed)s of %(number)s phone %(achievement)s",
        "%(stayed)s of %(number)s phones %(achievement)s",
        record.joined,
        stayed=whole(stayed(record)),
        number=whole(record.joined),
        achievement=words_for(record.parameters).achievement(record.ending),
    )


def outcome(record: PhaseRecord) -> str:
    """Return the result, or what the phase waits for, in a few words."""
    if isinstance(record.ending, Outcome):
        return words_for(record.parameters).short(record.ending)
    if isinstance(record.ending, Failed):
        return record.ending.reason
    if helpers_step(record) is not None:
        return _("%(step)s: waits for the helper", step=step(record.step))
    return _("waits for phones to join") if record.status == GATHERING else step(record.step)


def summary(records: tuple[PhaseRecord, ...]) -> str:
    """Return the state of all phases in one sentence."""
    if not records:
        return _("Ready for the first phase")
    under_way = sum(record.status in (GATHERING, RUNNING) for record in records)
    results = sum(isinstance(record.ending, Outcome) for record in records)
    running = _("Nothing is under way")
    if under_way:
        running = ngettext(
            "%(number)s phase under way",
            "%(number)s phases under way",
            under_way,
            number=whole(under_way),
        )
    return _(
        "%(running)s, %(results)s published", running=running, results=counted(results, "result")
    )


def what_to_do(record: PhaseRecord) -> str:
    """Return advice for the next phase after one without a result."""
    steps = asked_steps(record)
    if record.status == STOPPED:
        if steps:
            return _(
                "Start another phase when you are ready; what phones spent of their privacy budget "
                "stays spent."
            )
        return _(
            "Start another phase when you are ready; no phone was asked anything, so nothing was "
            "spent."
        )
    if record.steps and asks_helper(record, record.steps[-1].step):
        return _(
            "Ask the helper's operator what went wrong (see the driver's log), then start another "
            "phase. What phones spent of their privacy budget stays spent, and what they sent is "
            "erased."
        )
    if not steps:
        return _after_gathering(record)
    last = steps[-1]
    if last.answered < least_answers(record):
        return _(
            "Give the next phase longer steps (--step-hours), so that phones that wake up rarely "
            "can answer, or allow more of them to drop out (--dropout). The phase's page shows at "
            "which step phones were lost."
        )
    plan = record.parameters.plan()
    step = plan.step(last.step)
    if step and isinstance(plan.part(step.part), LocalRelease):
        return _(words_for(record.parameters).nothing_found)
    return _(
        "Enough phones answered, but no sum could be computed from their answers. Start the phase "
        "again; if it fails at the same step, the server's log names the phones whose answers were "
        "left out."
    )


def _after_gathering(record: PhaseRecord) -> str:
    if record.joined < record.least:
        return _(
            "No phone was asked anything, so nothing was spent. Enrol more phones (earshot "
            "invite), gather for longer (--gather-hours), or start with fewer (--least-phones)."
        )
    return _(
        "No phone was asked anything, so nothing was spent. The parameters do not suit the phones "
        "that joined: start the phase again with parameters that meet the reason above."
    )


def trust(parameters: Parameters) -> str:
    """Return a sentence on whom phones trust with their inputs to the sums of a phase."""
    return " ".join(_(text) for text in _TRUST[parameters.summation])


def parameter_rows(record: PhaseRecord) -> tuple[tuple[str, str, object], ...]:
    """Return the parameters of a phase: each one's description, symbol and value."""
    parameters = agreed_parameters(record)
    values: dict[str, Any] = {}
    for name in parameters.__struct_fields__:
        value = getattr(parameters, name)
        if isinstance(value, Matrix):
            value = _("%(rows)s of %(columns)s dimensions", rows=value.rows, columns=value.columns)
        if isinstance(value, SummationName):
            value = _(_SUMMATIONS[value])
        if name == "places":
            value = _places(value)
        if name == "rows":
            value = _rows(value, len(parameters.labels))
        inner = getattr(value, "__struct_fields__", None)
        if inner is None:
            values[name] = value
        else:  # rows of start centroids are not for people
            values |= {each: getattr(value, each) for each in inner if each != "rows"}
    if "since" in values:
        values["since"] = window(values["since"], values.pop("until")) or _("of every day")
    digest = parameters.hierarchy.hex()
    values["hierarchy"] = (
        _("several for each label; phones check them against the digest %(digest)s", digest=digest)
        if digest
        else _("the labels themselves")
    )
    known = [
        (_(words), symbol, values.pop(name))
        for name, (words, symbol) in _PARAMETERS.items()
        if name in values
    ]
    return (*known, *((name.replace("_", " ").capitalize(), "", values[name]) for name in values))


def _rows(rows: int, labels: int) -> str:
    if rows == labels:
        return _("%(rows)s, one for each label", rows=rows)
    return _(
        "%(rows)s: %(labels)s of labels, and one for each choice with another name",
        rows=rows,
        labels=labels,
    )


def _places(places: AgreedPlaces | None) -> str:
    if places is None:
        return _("none: they count as unknown")
    known = {
        "places": len(places.labels),
        "named": sum(label != UNNAMED for label in places.labels),
        "encoder": places.encoder,
    }
    if places.radius is None:
        return _(
            "%(places)s, of which %(named)s have a name, in embeddings of %(encoder)s", **known
        )
    return _(
        "%(places)s, of which %(named)s have a name, in embeddings of %(encoder)s, each within "
        "%(radius)s (1 − cosine)",
        **known,
        radius=real(places.radius),
    )


_SUMMATIONS = {
    SummationName.BELL: noted("phones’ masks (Bell et al.)"),
    SummationName.TWO_OPERATORS: noted("two operators, inputs proved"),
    SummationName.TWO_OPERATORS_UNPROVED: noted("two operators, inputs unproved"),
}
_OPERATORS = noted(
    "Two operators add up, this server and its helper: phones trust that these two never put their "
    "data together, and the costs count the noise of one of them alone."
)
_UNPROVED = noted(
    "Inputs are not proved: one phone can decide the outcome, and nobody would see it."
)
_TRUST = {
    SummationName.BELL: (
        noted(
            "Phones mask their inputs for each other (Bell et al.): they trust this server to "
            "follow the protocol, and that no more of them are corrupted or vanish than the phase "
            "allows for."
        ),
        _UNPROVED,
    ),
    SummationName.TWO_OPERATORS: (
        _OPERATORS,
        noted("Invalid inputs are left out, by name."),
    ),
    SummationName.TWO_OPERATORS_UNPROVED: (_OPERATORS, _UNPROVED),
}
_PARAMETERS = {
    "phones": (noted("Phones"), "n"),
    "dropout": (noted("Fraction that may vanish"), "ρ"),
    "corrupted": (noted("Fraction an adversary may control"), "γ"),
    "summation": (noted("Summation"), ""),
    "step_seconds": (noted("Longest wait in a step"), ""),
    "recordings": (noted("Recordings of a phone, nominal"), "N"),
    "contacts": (noted("Length to which a phone’s counts are projected"), "B"),
    "noise": (noted("Noise of each count, in phones"), "σ"),
    "since": (noted("Contacts that count"), ""),
    "places": (noted("Places that name contacts without a label"), ""),
    "encoder": (noted("Encoder"), ""),
    "dimensions": (noted("Dimensions of a point"), ""),
    "count": (noted("Start centroids"), ""),
    "most_cells": (noted("Cells, at most"), "k"),
    "sums": (noted("Sums of cells"), "T"),
    "geometry": (noted("Geometry"), ""),
    "local_centroids": (noted("Centroids a phone computes"), "k"),
    "top_local_centroids": (noted("Of those, published"), "k*"),
    "top_global_centroids": (noted("Environments kept, at most"), "g*"),
    "centroid_votes": (noted("Votes for centroids, per phone"), "v"),
    "label_votes": (noted("Votes for labels, per phone"), "v"),
    "clustering": (noted("Budget of the clustering"), "ε₁"),
    "clustering_runs": (noted("Times a phone clusters, on average"), ""),
    "selection_method": (noted("Method of each selection"), ""),
    "selection": (noted("Budget of each selection"), "ε₂"),
    "centroid_vote": (noted("Budget of the centroid vote"), "ε₃"),
    "label_vote": (noted("Budget of the label vote"), "ε₄"),
    "confusion": (noted("Counts how places name labelled recordings"), ""),
    "cells_noise": (noted("Noise of each sum of cells, in phones"), "σ"),
    "labels_noise": (noted("Noise of the sum of labels, in phones"), "σ"),
    "rows": (noted("Rows of the sum of labels"), ""),
    "kinds": (noted("Kinds of sound by which rows are split"), ""),
    "samples": (noted("Samples to be labelled"), "B"),
    "votes_noise": (noted("Noise of each number of votes"), "σ₂"),
    "check_noise": (noted("Noise of each number that agrees"), "σ₁"),
    "threshold": (noted("Votes that must agree"), "T"),
    "largest_weight": (noted("Votes of one phone, at most"), "W"),
    "delta": (noted("δ for which costs are stated"), "δ"),
    "labels": (noted("Labels"), "L"),
    "hierarchy": (noted("Choices that polls offer people"), ""),
    "noise_crowd": (noted("Noise crowd"), ""),
}
