"""Refusals of a phase as phones report them: the rules, and how many phones refuse by each."""

from __future__ import annotations

from typing import NamedTuple

from earshot_protocol.rules import Rule
from earshot_server.dashboard.wording import counted
from earshot_server.records import RUNNING, PhaseRecord


class Row(NamedTuple):
    """One rule: its name for programs, its meaning for people, and how many phones refuse by it."""

    rule: str
    meaning: str
    phones: int


def rows(refusals: dict[str, int]) -> tuple[Row, ...]:
    """Return each rule by which phones refuse, most frequent first."""
    return tuple(
        Row(rule, MEANINGS.get(rule, _UNKNOWN), phones) for rule, phones in refusals.items()
    )


def short(rule: str) -> str:
    """Return the meaning of a rule without advice."""
    return MEANINGS.get(rule, _UNKNOWN).partition(": ")[0]


def summary(record: PhaseRecord) -> str:
    """Return how many phones refuse a phase, for which reasons, and whether it can still succeed.

    The text is empty if no phone has refused.

    Args:
        record: Record of the phase.
    """
    refused = sum(record.refusals.values())
    if not refused:
        return ""
    reasons = "; ".join(f"{short(rule)} ({phones})" for rule, phones in record.refusals.items())
    everybody = refused >= record.joined
    who = f"All {counted(refused, 'phone')}" if everybody else counted(refused, "phone")
    said = f"{who} refuse{'s' if refused == 1 and not everybody else ''} this phase: {reasons}"
    if record.status == RUNNING and record.joined - refused < record.least_answers:
        said += (
            f"; {counted(record.least_answers, 'answer')} are needed, so it cannot succeed unless "
            "some of them answer nevertheless: stop it (earshot phase stop) and start one that "
            "they accept"
        )
    return said


_UNKNOWN = "a rule that this version does not know"
MEANINGS: dict[str, str] = {
    Rule.LEAST_PHONES: "too few phones take part: gather more (--phones, --least-phones)",
    Rule.LARGEST_PHONES: "more phones take part than the phone accepts: want fewer (--phones)",
    Rule.LARGEST_NOISE_CROWD: "the phase relies on the noise of too many phones",
    Rule.LARGEST_EPSILON: "ε of the phase is too large: give a smaller --budget",
    Rule.LARGEST_DELTA: "δ of the phase is too large",
    Rule.LARGEST_YEARLY_EPSILON: "what the phone may spend in a year is used up",
    Rule.LARGEST_YEARLY_DELTA: "what the phone may spend of δ in a year is used up",
    Rule.LARGEST_LIFETIME_EPSILON: "what the phone may spend in its life is used up",
    Rule.LARGEST_LIFETIME_DELTA: "what the phone may spend of δ in its life is used up",
    Rule.LARGEST_PHONE_EPSILON: "the phase costs a phone as a whole too much, whatever it costs a "
    "recording: give a smaller --budget, or fewer votes or contacts; on the local route, phones "
    "have to agree to it (earshot phone --per-recording)",
    Rule.LARGEST_PHONE_DELTA: "δ of the phase is too large for a phone as a whole",
    Rule.LARGEST_YEARLY_PHONE_EPSILON: "what a phone as a whole may spend in a year is used up",
    Rule.LARGEST_YEARLY_PHONE_DELTA: "what a phone as a whole may spend of δ in a year is used up",
    Rule.LARGEST_LIFETIME_PHONE_EPSILON: "what a phone as a whole may spend in its life is used up",
    Rule.LARGEST_LIFETIME_PHONE_DELTA: "what a phone as a whole may spend of δ in its life is used "
    "up",
    Rule.DELTA: "δ of the phase is not smaller than 1/phones: one of them may be exposed",
    Rule.LARGEST_DROPOUT: "too many phones may vanish: give a smaller --dropout",
    Rule.LEAST_CORRUPTED: "too few phones may be corrupted: give a larger --corrupted",
    Rule.LEAST_THRESHOLD: "too few shares reveal a secret",
    Rule.LEAST_STATISTICAL_SECURITY: "the secure sum is too weak",
    Rule.LEAST_CORRECTNESS: "the secure sum fails too easily",
    Rule.ENCODER: "the phone has another encoder: name it (--encoder)",
    Rule.DIMENSIONS: "more dimensions than an embedding has: give fewer (--dimensions)",
    Rule.PARAMETERS: "no phase can run under these parameters",
    Rule.SUM: "the parameters of a secure sum are not those of the phase, or not safe",
    Rule.UNKNOWN_HELPER: "the phone's app does not name this server as a leader, or the helper as "
    "a helper, of sums by two operators: an app with both keys is needed (Policy.leaders, "
    "Policy.helpers)",
    Rule.WEAK_NOISE: "the helper's offer of a sum states less noise than the phase promises",
    Rule.TOO_FEW: "the helper's offer lets a total be made of fewer reports than the phase says",
    Rule.WRONG_OFFER: "the offer of a sum is not signed by both operators, or is not for this task",
    Rule.PROOFS: "ballots must be proved, and the phone's app lacks the package for that: an app "
    "with the extra [proofs] is needed",
    Rule.CLOSED: "by the phone's clock, the sum does not take reports now: the phone came too "
    "late, or its clock is wrong by more than an hour",
    Rule.CHANGED: "the parameters of the phase, or the phone's number, changed between its steps",
    Rule.REPEATED: "the phone has released this already",
    Rule.PROTOCOL: "a task that the protocol forbids: a defect of the server or of the app",
}
"""Meaning of each rule, for operators."""
