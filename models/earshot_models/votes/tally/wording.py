"""Sentences on who sees what, and what may be noise, for a reader who trusts nobody."""

from __future__ import annotations

from earshot_models.votes.rules.rule import Kind
from earshot_models.votes.tally.federated import Federated
from earshot_models.votes.tally.interface import Purchase, Tally
from earshot_protocol.privacy.mechanisms import Unit

CONFIDENCE = 0.95

UNIT_WORDS = {
    Unit.PHONE: "a teacher is left out (its noise share is added all the same)",
    Unit.REPLACED_PHONE: "a teacher, or one record of it, is replaced by another",
}


def sees(tally: Tally) -> list[str]:
    """Return what is revealed to whom."""
    if isinstance(tally, Federated):
        return _sees_sums(tally)
    published = "published: for each query its outcome"
    if tally.adaptive:
        published += ", an answer or none"
    return [
        "the curator sees every vote: the figures below protect against all others",
        f"{published}; no count, noisy or not, and not how close a vote was",
    ]


def _sees_sums(tally: Federated) -> list[str]:
    own, crowd = tally.rule, tally.sums.crowd
    entries = own.ballot(tally.poll).length
    counts = f"for each query {entries} noisy counts"
    sentences = [
        "teachers see all queries, and with a check every proposed answer",
        "a teacher's votes leave it under a mask; whether it abstained, vanished from the vote or "
        "weighs nothing, its ballot looks like any other",
    ]
    if own.check is None:
        bar = "" if own.bar is None else ", and whether there is one,"
        sentences.append(f"the server sees {counts}, the answers{bar} are read from them")
    elif tally.proposals is None:
        sentences.append(
            f"the server sees {counts}, and {_checked(tally)} with noise of their own; also of "
            "queries without an answer"
        )
    else:
        sentences.append(
            f"the server sees {_checked(tally)} where the student proposes an answer, and {counts} "
            "where teachers do not agree with it"
        )
    sentences.append(
        f"it sees no vote unless more than {100 * crowd.corrupted:g} % of the teachers tell it "
        f"theirs; the noise is what {crowd.honest_survivors} of {crowd.teachers} teachers add, "
        "and grows with every further one that stays"
    )
    return sentences


def _checked(tally: Federated) -> str:
    per_label = tally.rule.check_ballot(tally.poll).length > 1
    return f"how many agree with {'each label of ' if per_label else ''}the proposed answer"


def lead_in_doubt(tally: Tally) -> float:
    """Return the votes below which a lead is as large as noise alone makes one in 5 of 100 votes.

    It is a lead between two classes, or a label's distance from what decides it.
    """
    own = tally.rule
    if not isinstance(tally, Federated):
        return own.lead_in_doubt(CONFIDENCE)
    law = tally.summed(Purchase(Kind.VOTES, 1), tally.heaviest).noise(tally.sums.crowd.teachers)
    decisive = law.of_difference if own.between_classes else law
    return decisive.radius(CONFIDENCE) / own.ballot(tally.poll).vote
