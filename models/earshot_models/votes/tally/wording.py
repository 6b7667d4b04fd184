"""Who sees what, and what may be noise, in sentences that a reader who trusts nobody can check."""

from __future__ import annotations

import math

from earshot_models.votes.rules.mechanisms import THRESHOLDS, Mechanism, Name
from earshot_models.votes.tally.federated import Federated
from earshot_models.votes.tally.interface import Kind, Purchase, Tally
from earshot_protocol.privacy.mechanisms import Unit

CONFIDENCE = 0.95

UNIT_WORDS = {
    Unit.PHONE: "a teacher is left out (its noise share is added all the same)",
    Unit.REPLACED_PHONE: "a teacher, or one record of it, is replaced by another",
}


def sees(tally: Tally) -> list[str]:
    """What is revealed to whom."""
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
    own, crowd = tally.mechanism, tally.sums.crowd
    entries = own.ballot.length
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
            f"the server sees {counts}, and {_checked(own)} with noise of their own; also of "
            "queries without an answer"
        )
    else:
        sentences.append(
            f"the server sees {_checked(own)} where the student proposes an answer, and {counts} "
            "where teachers do not agree with it"
        )
    sentences.append(
        f"it sees no vote unless more than {100 * crowd.corrupted:g} % of the teachers tell it "
        f"theirs; the noise is what {crowd.honest_survivors} of {crowd.teachers} teachers add, "
        "and grows with every further one that stays"
    )
    return sentences


def _checked(mechanism: Mechanism) -> str:
    per_label = mechanism.check_ballot.length > 1
    return f"how many agree with {'each label of ' if per_label else ''}the proposed answer"


def lead_in_doubt(tally: Tally) -> float:
    """Votes: a lead below that is as large as noise alone makes one in one of twenty votes.

    Between two classes; of labels, from what decides them.
    """
    own = tally.mechanism
    between = not own.several or own.name is Name.POWERSET
    if isinstance(tally, Federated):
        law = tally.mechanism_of(Purchase(Kind.VOTES, 1), own.largest_weight).noise(
            tally.sums.crowd.teachers
        )
        return (law.of_difference if between else law).radius(CONFIDENCE) / own.ballot.vote
    from scipy import optimize, stats

    if own.name is Name.LNMAX:
        # P(|D| > x) of a difference of two Laplace variables of scale 1.
        tail = optimize.brentq(lambda x: math.exp(-x) * (1 + x / 2) - (1 - CONFIDENCE), 0.0, 50.0)
        return float(tail) * own.deviation
    deviations = float(stats.norm.ppf((1 + CONFIDENCE) / 2))
    return deviations * own.deviation * (math.sqrt(2.0) if between else 1.0)


def passes_by_chance(mechanism: Mechanism, voters: float) -> float | None:
    """How likely a query passes the check on which teachers agree least; None without a check."""
    from scipy import stats

    if mechanism.bar is not None:  # one of all noisy counts is enough
        silent = stats.norm.logcdf(mechanism.bar / mechanism.deviation)
        return float(-math.expm1(mechanism.classes * silent))
    if mechanism.check is None:
        return None
    if mechanism.name in THRESHOLDS:
        agreement = 0.0  # no teacher names any label
    elif mechanism.name is Name.POWERSET:
        agreement = 1.0  # each teacher has a set of its own
    else:
        agreement = voters / (2 if mechanism.several else mechanism.classes)
    distance = (agreement - mechanism.check.threshold) / mechanism.check.deviation
    return float(stats.norm.cdf(distance))
