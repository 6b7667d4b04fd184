"""What settings of votes against thresholds cost on one ensemble: as claimed, and what holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from earshot_models.tagging.metrics import scores
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.voting.confident_check import Check
from earshot_protocol.voting.teacher_ballots import NONE
from earshot_protocol.voting.thresholds import (
    AdaptiveThreshold,
    GNThreshold,
    GridThreshold,
    ThresholdVoting,
    largest_outputs,
)
from earshot_server.accounting.votes import muschiol
from earshot_server.accounting.votes.costs import Method, epsilon
from earshot_server.accounting.votes.thresholds import threshold_divergences
from earshot_studies.kit.outcome import Row
from earshot_studies.muschiol.printed import ADAPTIVE, ANSWERED, TABLE_5_4, Setting, rule

Numbers = NDArray[np.float64]
Passing = NDArray[np.bool_]

GRID = "grid"
"""th_e: one of a public grid, chosen by Gumbel noise."""
SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
"""Of the teachers: that grid."""
GUMBEL = 5.0
"""g, in votes."""
MOST = 3
"""v: a teacher's largest outputs, which alone count where costs are to hold."""
NOISES = (0.1, 0.2, 0.3, 0.4, 0.5)
"""σ_e of Figures 5.13 to 5.15."""
CHECK_NOISES = (0.2, 0.4, 0.6)
"""σ_c of Figures 5.14 and 5.15: the text has no numbers but 'doubled or tripled'."""
QUERIES = 1000
"""Answers of the figures."""
PUBLIC = (*TABLE_5_4[2000], ("0.6", ""), ("0.6", "0.6"), (GRID, ""), (GRID, "0.6"))
"""Settings of the table, one that Figure 5.13 adds, and one that is ours."""
ORDERS = np.concatenate([1 + np.geomspace(0.02, 1, 15), np.geomspace(2.2, 40, 15)])
BUCKETS = np.geomspace(1e-4, 1, 17)
"""Of q in Figure 5.16."""


@dataclass(frozen=True)
class Ensemble:
    """What teachers say of the samples that they are asked about.

    Attributes:
        votes: sums of their probabilities, (queries, labels).
        cut: sums of each teacher's `MOST` largest alone, (queries, labels).
        truth: 0 or 1, (queries, labels).
        teachers: M.
    """

    votes: Numbers
    cut: Numbers
    truth: NDArray[np.int8]
    teachers: int

    @classmethod
    def of(cls, probabilities: NDArray[np.floating], truth: NDArray[np.int8]) -> Ensemble:
        """From what each teacher says, (teachers, queries, labels) in [0, 1]."""
        cut = np.zeros(probabilities.shape[1:])
        for each in probabilities:
            cut += largest_outputs(each.astype(np.float64), MOST)
        whole = probabilities.sum(axis=0, dtype=np.float64)
        teachers = len(probabilities)
        return cls(np.minimum(whole, teachers), np.minimum(cut, teachers), truth, teachers)


class Cost(NamedTuple):
    """Divergences of one query on average.

    Attributes:
        asked: of its check, (orders,).
        answered: of its answer, (orders,).
    """

    asked: Numbers
    answered: Numbers

    def of(self, answers: int, passed: float) -> Numbers:
        """Of so many answers, where this share of queries is answered."""
        return answers * (self.answered + self.asked / passed)


def measure(
    ensemble: Ensemble, seed: int, progress: Callable[[str], None] = lambda what: None
) -> Iterator[Row]:
    """Every setting of Table 5.4 and of Figures 5.13 to 5.16 on one ensemble.

    Args:
        ensemble: with 50 teachers, as Muschiol has them.
        seed: of the noise.
        progress: told what is next.
    """
    for setting in PUBLIC:
        progress(" + ".join(filter(None, setting)))
        yield table_row(ensemble, setting, seed)
    for noise in NOISES:
        progress(f"σ_e = {noise:g}")
        for threshold in ("0.2", "0.4", "0.6", ADAPTIVE):
            yield figure_row("5.13", ensemble, (threshold, ""), noise, 0.6, seed)
        for check_noise in CHECK_NOISES:
            for table, threshold in (("5.14", "0.4"), ("5.15", ADAPTIVE)):
                yield figure_row(table, ensemble, (threshold, "0.6"), noise, check_noise, seed)
    for threshold in ("0.4", ADAPTIVE):
        yield from distribution(ensemble, threshold, seed)


def table_row(ensemble: Ensemble, setting: Setting, seed: int) -> Row:
    """One row of Table 5.4: theirs by their accounting, and what holds."""
    row = figure_row("5.4", ensemble, setting, 0.3, 0.6, seed, ANSWERED[0], False)
    if setting[0] != GRID:
        longer = _claimed(ensemble, setting, 0.3, 0.6, seed, ANSWERED[1])
        row |= {f"{name}_5000": longer[name] for name in ("claimed", "claimed_independent")}
    return row | sound(ensemble, setting, 0.3, 0.6, seed, ANSWERED[0], everything=True)


def figure_row(
    table: str,
    ensemble: Ensemble,
    setting: Setting,
    noise: float,
    check_noise: float,
    seed: int,
    answers: int = QUERIES,
    soundly: bool = True,
) -> Row:
    """One point of a figure."""
    row: Row = {
        "table": table,
        "th_e": setting[0],
        "th_c": setting[1],
        "sigma_e": noise,
        "sigma_c": check_noise if setting[1] else "",
        "answers": answers,
        "seed": seed,
    }
    if setting[0] != GRID:
        row |= _claimed(ensemble, setting, noise, check_noise, seed, answers)
    if soundly:
        row |= sound(ensemble, setting, noise, check_noise, seed, answers)
    return row


def _claimed(
    ensemble: Ensemble,
    setting: Setting,
    noise: float,
    check_noise: float,
    seed: int,
    answers: int,
) -> Row:
    """As Muschiol accounts for it, with its own rule and all outputs of the teachers."""
    own = rule(setting, noise, check_noise)._replace(teachers=ensemble.teachers)
    generator = np.random.default_rng([seed, 0])
    passed = np.ones(len(ensemble.votes), dtype=np.bool_)
    if own.check is not None:
        checked = own.check_sigma * generator.standard_normal(len(passed))
        passed = ensemble.votes.max(axis=1) + checked >= own.check * own.teachers
    share = float(passed.mean())
    cost = Cost(
        muschiol.claimed_checks(own, ensemble.votes).mean(axis=0),
        muschiol.claimed_answers(own, ensemble.votes[passed]).mean(axis=0),
    )
    asked = round(answers / share)
    noisy = ensemble.votes + own.sigma * generator.standard_normal(ensemble.votes.shape)
    named = noisy > own.thresholds(ensemble.votes)[:, None]
    return {
        "answered_share": share,
        "claimed": _as_printed(cost.of(answers, share)),
        "claimed_asked": _as_printed(cost.of(round(answers * share), share)),
        "claimed_independent": muschiol.independent(own, asked, answers),
        "q": float(np.exp(own.log_q(ensemble.votes[passed])).mean()),
        **_right("printed", ensemble.truth[passed], named[passed]),
    }


def _as_printed(divergences: Numbers) -> float:
    return epsilon(divergences, muschiol.ORDERS, muschiol.DELTA, classic=True)[0]


def voting(setting: Setting, noise: float, check_noise: float, teachers: int) -> ThresholdVoting:
    """A setting in a form that holds: noise comes before a gap is looked for."""
    threshold, check = setting
    sigma = muschiol.deviation(noise, teachers)
    asked = None
    if check:
        asked = Check(float(check) * teachers, muschiol.deviation(check_noise, teachers))
    match threshold:
        case "adaptive":
            return AdaptiveThreshold(sigma, teachers, MOST, asked)
        case "grid":
            grid = tuple(share * teachers for share in SHARES)
            return GridThreshold(grid, GUMBEL, sigma, teachers, MOST, asked)
    return GNThreshold(float(threshold) * teachers, sigma, teachers, MOST, asked)


def sound(
    ensemble: Ensemble,
    setting: Setting,
    noise: float,
    check_noise: float,
    seed: int,
    answers: int,
    everything: bool = False,
) -> Row:
    """ε that holds at Muschiol's δ, by the best order, with v outputs of a teacher.

    Args:
        ensemble: that is asked.
        setting: th_e and th_c.
        noise: σ_e.
        check_noise: σ_c.
        seed: of the noise.
        answers: so many.
        everything: also for a replaced teacher, and for one whose outputs all count.
    """
    own = voting(setting, noise, check_noise, ensemble.teachers)
    bytes_of = np.random.default_rng([seed, 1]).bytes
    outcomes = own.winners(ensemble.cut, bytes_of)
    passed = outcomes[:, 0] != NONE
    found: Row = {"sound_share": float(passed.mean())}
    found |= _right("sound", ensemble.truth[passed], outcomes[passed] == 1)
    wanted: list[tuple[str, ThresholdVoting, Numbers, Unit]] = [
        ("left_out", own, ensemble.cut, Unit.PHONE)
    ]
    if everything:
        free = replace(own, most=None)
        wanted += [
            ("replaced", own, ensemble.cut, Unit.REPLACED_PHONE),
            ("uncut", free, ensemble.votes, Unit.REPLACED_PHONE),
        ]
    for name, each, votes, unit in wanted:
        for method in Method:
            if method is Method.DEPENDENT and not everything:
                continue
            cost = _sound_cost(each, votes, passed, method, unit)
            spent = cost.of(answers, float(passed.mean()))
            found[f"{name}_{method}"] = epsilon(spent, ORDERS, muschiol.DELTA)[0]
    return found


def _sound_cost(
    own: ThresholdVoting, votes: Numbers, passed: Passing, method: Method, unit: Unit
) -> Cost:
    table = votes[:1] if method is Method.INDEPENDENT else votes
    each = threshold_divergences(own, table, ORDERS, method, unit)
    answered = each.answered if method is Method.INDEPENDENT else each.answered[passed]
    return Cost(each.asked.mean(axis=0), answered.mean(axis=0))


def distribution(ensemble: Ensemble, threshold: str, seed: int) -> Iterator[Row]:
    """Figure 5.16: samples by q, σ_e = .4, with and without a check of σ_c = .6 at .6."""
    generator = np.random.default_rng([seed, 2])
    own = rule((threshold, "0.6"), 0.4, 0.6)._replace(teachers=ensemble.teachers)
    q = np.exp(own.log_q(ensemble.votes))
    noisy = ensemble.votes.max(axis=1) + own.check_sigma * generator.standard_normal(len(q))
    passed = noisy >= (own.check or 0.0) * own.teachers
    costs = muschiol.claimed_answers(own, ensemble.votes)
    places = np.clip(np.searchsorted(BUCKETS, q), 1, len(BUCKETS) - 1)
    for place in range(1, len(BUCKETS)):
        there = places == place
        row: Row = {
            "table": "5.16",
            "th_e": threshold,
            "th_c": "",
            "sigma_e": 0.4,
            "sigma_c": 0.6,
            "answers": QUERIES,
            "seed": seed,
            "q": float(BUCKETS[place]),
            "answered_share": float(there.mean()),
            "sound_share": float((there & passed).mean()),
            "claimed": "",
        }
        if there.any():
            row["claimed"] = _as_printed(QUERIES * costs[there].mean(axis=0))
        yield row


def _right(name: str, truth: NDArray[np.int8], named: Passing) -> Row:
    found = scores(truth, named)
    return {
        f"macro_f1_{name}": found.macro_f1,
        f"micro_f1_{name}": found.micro_f1,
        f"never_named_{name}": found.never_named,
    }
