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
from earshot_server.dashboard.outcomes import words_for
from earshot_server.dashboard.wording import (
    counted,
    from_now,
    printable,
    real,
    since,
    whole,
    window,
)
from earshot_server.records import (
    FAILED,
    GATHERING,
    MOST_TRIES,
    RUNNING,
    STOPPED,
    PhaseRecord,
    StepRecord,
    Trouble,
)

_NOTHING_SPENT = "no phone was asked anything, so nothing was spent"


def trouble(found: Trouble, now: float) -> str:
    """Describe what blocks a phase, and what happens next."""
    return (
        f"The server could not move this phase on ({found.reason}); the driver's log says why. "
        f"It has tried {counted(found.attempts, 'time')} and tries again "
        f"{from_now(found.next_try, now)}; after {MOST_TRIES} tries the phase fails. "
        "The phones' answers are kept."
    )


def kind(record: PhaseRecord) -> str:
    """Return the kind of phase, capitalized."""
    return f"{record.parameters.kind.capitalize()} phase"


def name(record: PhaseRecord) -> str:
    """Return the phase's name in quotes; empty without a name."""
    return f"“{printable(record.name)}”" if record.name else ""


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
        return "the helper answered"
    return "waits for the helper" if step.closed is None else "no answer from the helper"


def waiting(found: Trouble | None, step: StepRecord, now: float) -> str:
    """Describe since when a step waits for the helper, and the outcome of its requests."""
    said = f"Waiting for the helper {since(step.opened, now)}."
    if found is None:
        return said
    return (
        f"{said} It was asked {counted(found.attempts, 'time')} without success ({found.reason}) "
        f"and is asked again {from_now(found.next_try, now)}; the driver's log says why. The "
        "phones' answers are kept."
    )


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
        return f"{whole(record.joined)} of {counted(record.wanted, 'phone')} have joined"
    present = present_step(record)
    if present is not None:
        return f"{whole(present.answered)} of {counted(present.expected, 'phone')} have answered"
    if record.status == RUNNING:
        return "Waiting for the helper"
    if record.status == STOPPED:
        return "An operator stopped this phase"
    if record.status == FAILED:
        return "This phase ended without a result"
    achievement = words_for(record.parameters).achievement(record.ending)
    return f"{whole(stayed(record))} of {counted(record.joined, 'phone')} {achievement}"


def outcome(record: PhaseRecord) -> str:
    """Return the result, or what the phase waits for, in a few words."""
    if isinstance(record.ending, Outcome):
        return words_for(record.parameters).short(record.ending)
    if isinstance(record.ending, Failed):
        return record.ending.reason
    if helpers_step(record) is not None:
        return f"{record.step}: waits for the helper"
    return "waits for phones to join" if record.status == GATHERING else record.step


def summary(records: tuple[PhaseRecord, ...]) -> str:
    """Return the state of all phases in one sentence."""
    if not records:
        return "Ready for the first phase"
    under_way = sum(record.status in (GATHERING, RUNNING) for record in records)
    results = sum(isinstance(record.ending, Outcome) for record in records)
    running = f"{counted(under_way, 'phase')} under way" if under_way else "Nothing is under way"
    return f"{running}, {counted(results, 'result')} published"


def what_to_do(record: PhaseRecord) -> str:
    """Return advice for the next phase after one without a result."""
    steps = asked_steps(record)
    if record.status == STOPPED:
        spent = "what phones spent of their privacy budget stays spent" if steps else _NOTHING_SPENT
        return f"Start another phase when you are ready; {spent}."
    if record.steps and asks_helper(record, record.steps[-1].step):
        return (
            "Ask the helper's operator what went wrong (see the driver's log), then start another "
            "phase. What phones spent of their privacy budget stays spent, and what they sent is "
            "erased."
        )
    if not steps:
        return _after_gathering(record)
    last = steps[-1]
    if last.answered < least_answers(record):
        return (
            "Give the next phase longer steps (--step-hours), so that phones that wake up rarely "
            "can answer, or allow more of them to drop out (--dropout). The phase's page shows at "
            "which step phones were lost."
        )
    plan = record.parameters.plan()
    step = plan.step(last.step)
    if step and isinstance(plan.part(step.part), LocalRelease):
        return words_for(record.parameters).nothing_found
    return (
        "Enough phones answered, but no sum could be computed from their answers. Start the phase "
        "again; if it fails at the same step, the server's log names the phones whose answers were "
        "left out."
    )


def _after_gathering(record: PhaseRecord) -> str:
    if record.joined < record.least:
        return (
            "No phone was asked anything, so nothing was spent. Enrol more phones (earshot "
            "invite), gather for longer (--gather-hours), or start with fewer (--least-phones)."
        )
    return (
        "No phone was asked anything, so nothing was spent. The parameters do not suit the phones "
        "that joined: start the phase again with parameters that meet the reason above."
    )


def trust(parameters: Parameters) -> str:
    """Return a sentence on whom phones trust with their inputs to the sums of a phase."""
    return _TRUST[parameters.summation]


def parameter_rows(record: PhaseRecord) -> tuple[tuple[str, str, object], ...]:
    """Return the parameters of a phase: each one's description, symbol and value."""
    parameters = agreed_parameters(record)
    values: dict[str, Any] = {}
    for name in parameters.__struct_fields__:
        value = getattr(parameters, name)
        if isinstance(value, Matrix):
            value = f"{value.rows} of {value.columns} dimensions"
        if isinstance(value, SummationName):
            value = _SUMMATIONS[value]
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
        values["since"] = window(values["since"], values.pop("until")) or "of every day"
    digest = parameters.hierarchy.hex()
    values["hierarchy"] = (
        f"several for each label; phones check them against the digest {digest}"
        if digest
        else "the labels themselves"
    )
    known = [(*words, values.pop(name)) for name, words in _PARAMETERS.items() if name in values]
    return (*known, *((name.replace("_", " ").capitalize(), "", values[name]) for name in values))


def _rows(rows: int, labels: int) -> str:
    if rows == labels:
        return f"{rows}, one for each label"
    return f"{rows}: {labels} of labels, and one for each choice with another name"


def _places(places: AgreedPlaces | None) -> str:
    if places is None:
        return "none: labels alone count"
    named = sum(label != UNNAMED for label in places.labels)
    near = "" if places.radius is None else f", each within {real(places.radius)} (1 − cosine)"
    return (
        f"{len(places.labels)}, of which {named} have a name, in embeddings of {places.encoder}"
        f"{near}"
    )


_SUMMATIONS = {
    SummationName.BELL: "phones’ masks (Bell et al.)",
    SummationName.TWO_OPERATORS: "two operators",
    SummationName.TWO_OPERATORS_PROVED: "two operators, ballots proved",
}
_OPERATORS = (
    "Two operators add up, this server and its helper: phones trust that these two never put their "
    "data together, and the costs count the noise of one of them alone."
)
_TRUST = {
    SummationName.BELL: (
        "Phones mask their inputs for each other (Bell et al.): they trust this server to follow "
        "the protocol, and that no more of them are corrupted or vanish than the phase allows for."
    ),
    SummationName.TWO_OPERATORS: _OPERATORS,
    SummationName.TWO_OPERATORS_PROVED: f"{_OPERATORS} Invalid ballots are left out.",
}
_PARAMETERS = {
    "phones": ("Phones", "n"),
    "dropout": ("Fraction that may vanish", "ρ"),
    "corrupted": ("Fraction an adversary may control", "γ"),
    "summation": ("Summation", ""),
    "step_seconds": ("Longest wait in a step", ""),
    "recordings": ("Recordings of a phone, nominal", "N"),
    "contacts": ("Contacts a phone counts, at most", ""),
    "since": ("Contacts that count", ""),
    "places": ("Places by which contacts without a label count", ""),
    "encoder": ("Encoder", ""),
    "dimensions": ("Dimensions of a point", ""),
    "count": ("Start centroids", ""),
    "most_cells": ("Cells, at most", "k"),
    "sums": ("Sums of cells", "T"),
    "geometry": ("Geometry", ""),
    "local_centroids": ("Centroids a phone computes", "k"),
    "top_local_centroids": ("Of those, published", "k*"),
    "top_global_centroids": ("Environments kept, at most", "g*"),
    "centroid_votes": ("Votes for centroids, per phone", "v"),
    "label_votes": ("Votes for labels, per phone", "v"),
    "clustering": ("Budget of the clustering", "ε₁"),
    "clustering_runs": ("Times a phone clusters, on average", ""),
    "selection_method": ("Method of each selection", ""),
    "selection": ("Budget of each selection", "ε₂"),
    "centroid_vote": ("Budget of the centroid vote", "ε₃"),
    "label_vote": ("Budget of the label vote", "ε₄"),
    "epsilon": ("Budget of the histogram", "ε"),
    "cells_noise": ("Noise of each sum of cells, in phones", "σ"),
    "labels_noise": ("Noise of the sum of labels, in phones", "σ"),
    "rows": ("Rows of the sum of labels", ""),
    "kinds": ("Kinds of sound by which rows are split", ""),
    "samples": ("Samples to be labelled", "B"),
    "votes_noise": ("Noise of each number of votes", "σ₂"),
    "check_noise": ("Noise of each number that agrees", "σ₁"),
    "threshold": ("Votes that must agree", "T"),
    "largest_weight": ("Votes of one phone, at most", "W"),
    "delta": ("δ for which costs are stated", "δ"),
    "labels": ("Labels", "L"),
    "hierarchy": ("Choices that polls offer people", ""),
}
