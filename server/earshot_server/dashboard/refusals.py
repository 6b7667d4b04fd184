"""Refusals of a phase as phones report them: the rules, and how many phones refuse by each."""

from __future__ import annotations

from typing import NamedTuple

from earshot_protocol.rules import Rule
from earshot_server.dashboard.languages import gettext as _
from earshot_server.dashboard.languages import ngettext, noted
from earshot_server.dashboard.wording import whole
from earshot_server.records import RUNNING, PhaseRecord


class Row(NamedTuple):
    """One rule: its name for programs, its meaning for people, and how many phones refuse by it."""

    rule: str
    meaning: str
    phones: int


def rows(refusals: dict[str, int]) -> tuple[Row, ...]:
    """Return each rule by which phones refuse, most frequent first."""
    return tuple(
        Row(rule, _(MEANINGS.get(rule, _UNKNOWN)), phones) for rule, phones in refusals.items()
    )


def short(rule: str) -> str:
    """Return the meaning of a rule without advice."""
    return _(MEANINGS.get(rule, _UNKNOWN)).partition(": ")[0]


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
    said = ngettext(
        "%(number)s phone refuses this phase: %(reasons)s",
        "%(number)s phones refuse this phase: %(reasons)s",
        refused,
        number=whole(refused),
        reasons=reasons,
    )
    if refused >= record.joined:
        said = ngettext(
            "All %(number)s phone refuse this phase: %(reasons)s",
            "All %(number)s phones refuse this phase: %(reasons)s",
            refused,
            number=whole(refused),
            reasons=reasons,
        )
    if record.status != RUNNING or record.joined - refused >= record.least_answers:
        return said
    return ngettext(
        "%(said)s; %(number)s answer are needed, so it cannot succeed unless some of them answer "
        "nevertheless: stop it (earshot phase stop) and start one that they accept",
        "%(said)s; %(number)s answers are needed, so it cannot succeed unless some of them answer "
        "nevertheless: stop it (earshot phase stop) and start one that they accept",
        record.least_answers,
        said=said,
        number=whole(record.least_answers),
    )


_UNKNOWN = noted("a rule that this version does not know")
MEANINGS: dict[str, str] = {
    Rule.LEAST_PHONES: noted("too few phones take part: gather more (--phones, --least-phones)"),
    Rule.LARGEST_PHONES: noted(
        "more phones take part than the phone accepts: want fewer (--phones)"
    ),
    Rule.LARGEST_NOISE_CROWD: noted("the phase relies on the noise of too many phones"),
    Rule.LARGEST_EPSILON: noted("ε of the phase is too large: give a smaller --budget"),
    Rule.LARGEST_DELTA: noted("δ of the phase is too large"),
    Rule.LARGEST_YEARLY_EPSILON: noted("what the phone may spend in a year is used up"),
    Rule.LARGEST_YEARLY_DELTA: noted("what the phone may spend of δ in a year is used up"),
    Rule.LARGEST_LIFETIME_EPSILON: noted("what the phone may spend in its life is used up"),
    Rule.LARGEST_LIFETIME_DELTA: noted("what the phone may spend of δ in its life is used up"),
    Rule.LARGEST_PHONE_EPSILON: noted(
        "the phase costs a phone as a whole too much, whatever it costs a recording: give a "
        "smaller --budget, or fewer votes or contacts; on the local route, phones have to agree to "
        "it (earshot phone --per-recording)"
    ),
    Rule.LARGEST_PHONE_DELTA: noted("δ of the phase is too large for a phone as a whole"),
    Rule.LARGEST_YEARLY_PHONE_EPSILON: noted(
        "what a phone as a whole may spend in a year is used up"
    ),
    Rule.LARGEST_YEARLY_PHONE_DELTA: noted(
        "what a phone as a whole may spend of δ in a year is used up"
    ),
    Rule.LARGEST_LIFETIME_PHONE_EPSILON: noted(
        "what a phone as a whole may spend in its life is used up"
    ),
    Rule.LARGEST_LIFETIME_PHONE_DELTA: noted(
        "what a phone as a whole may spend of δ in its life is used up"
    ),
    Rule.DELTA: noted("δ of the phase is not smaller than 1/phones: one of them may be exposed"),
    Rule.LARGEST_DROPOUT: noted("too many phones may vanish: give a smaller --dropout"),
    Rule.LEAST_CORRUPTED: noted("too few phones may be corrupted: give a larger --corrupted"),
    Rule.LEAST_THRESHOLD: noted("too few shares reveal a secret"),
    Rule.LEAST_STATISTICAL_SECURITY: noted("the secure sum is too weak"),
    Rule.LEAST_CORRECTNESS: noted("the secure sum fails too easily"),
    Rule.ENCODER: noted("the phone has another encoder: name it (--encoder)"),
    Rule.DIMENSIONS: noted("more dimensions than an embedding has: give fewer (--dimensions)"),
    Rule.PARAMETERS: noted("no phase can run under these parameters"),
    Rule.SUM: noted("the parameters of a secure sum are not those of the phase, or not safe"),
    Rule.UNKNOWN_HELPER: noted(
        "the phone's app does not name this server as a leader, or the helper as "
        "a helper, of sums by two operators: an app with both keys is needed (Policy.leaders, "
        "Policy.helpers)"
    ),
    Rule.WEAK_NOISE: noted("the helper's offer of a sum states less noise than the phase promises"),
    Rule.TOO_FEW: noted(
        "the helper's offer lets a total be made of fewer reports than the phase says"
    ),
    Rule.WRONG_OFFER: noted(
        "the offer of a sum is not signed by both operators, or is not for this task"
    ),
    Rule.PROOFS: noted(
        "inputs must be proved, and the phone's app lacks the package for that: an app "
        "with the extra [proofs] is needed, which installs pycryptodomex"
    ),
    Rule.CLOSED: noted(
        "by the phone's clock, the sum does not take reports now: the phone came too "
        "late, or its clock is wrong by more than an hour"
    ),
    Rule.CHANGED: noted(
        "the parameters of the phase, or the phone's number, changed between its steps"
    ),
    Rule.REPEATED: noted("the phone has released this already"),
    Rule.PROTOCOL: noted("a task that the protocol forbids: a defect of the server or of the app"),
}
"""Meaning of each rule, for operators."""
