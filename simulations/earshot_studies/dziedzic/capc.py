"""Collaboration: parties answer each other's queries through a secure sum (Tables 4 and 18).

Both tables are of Private Multi-Winner Voting (Dziedzic et al., PoPETs 2023), which replaces the
votes of CaPC (Choquette-Choo et al., ICLR 2021) by its own. There, encryption and a privacy
guardian hide queries, models and votes; here the secure sum hides ballots alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earshot_models.votes.costs.claims import printed_deviation
from earshot_models.votes.costs.costs import epsilon as renyi_epsilon
from earshot_models.votes.label_ballots import Approval
from earshot_models.votes.tally.secure_sums import SecureSums, TeacherCrowd
from earshot_protocol.privacy.divergences import ORDERS as FINE
from earshot_protocol.privacy.divergences import renyi
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.voting.vote_sums import VoteSum
from earshot_simulations.reporting.tables import markdown_table
from earshot_simulations.sweeps.estimate import Estimate, estimate, paired
from earshot_studies.dziedzic.contests import ORDERS, answered, binary
from earshot_studies.dziedzic.multi_winner import (
    BINARY,
    VOC_DELTA,
    MixtureStudy,
    VotingTeachers,
    best_noise,
    ensembles,
)
from earshot_studies.dziedzic.scores import MEASURES, scores
from earshot_studies.kit.claims import Claim, claims_table
from earshot_studies.kit.mixtures.embedding import Mixtures, Part
from earshot_studies.kit.mixtures.ensembles import Aim, Heads, trained
from earshot_studies.kit.outcome import Reproduction, Row, with_interval
from earshot_studies.kit.pictures import curve, multiples
from earshot_studies.kit.printed import printed_figures

NAME = "capc"

ASKERS = 3
ASKED = 1000
"""Queries of each asker."""
REAL = 5
"""Queries of the sum that is also run with real cryptography."""
_NAMED = 0.5
"""Probability above which a party's own model names a label, as in the paper on Pascal VOC."""

BEFORE, NO_NOISE = "before", "all queries, no noise"
TEN, TWENTY = "ε 10, their accounting", "ε 20, their accounting"
OUTCOMES, COUNTS, EVERY = (
    "ε 20, exact outcomes",
    "ε 20, noisy counts",
    "all queries, as much noise",
)
STATES = (BEFORE, TEN, TWENTY, OUTCOMES, COUNTS, EVERY, NO_NOISE)
_PRINTED: Mapping[str, str] = printed_figures(__package__)["parties"]


@dataclass(frozen=True)
class _Asker:
    """One of the parties, and the answers of all others to its queries.

    Attributes:
        own: Mixtures of the party itself.
        queries: Queries that it asks.
        ballots: Ballots of the others, int8 (others, queries, labels).
    """

    own: Part
    queries: Part
    ballots: NDArray[np.int8]

    def retrained(self, answers: NDArray[np.int8]) -> Heads:
        """Retrain on the party's own mixtures and on the answered queries, which are the first."""
        own, asked = self.own, self.queries.features[: len(answers)]
        return trained(
            Part(
                np.concatenate([own.features, asked]),
                np.concatenate([own.truth, answers.astype(np.int8)]),
            )
        )


def reproduce(study: MixtureStudy) -> Reproduction:
    """Measure askers' accuracy before and after the answers, and their cost to answerers."""
    rows = [row for seed in study.reported for row in study.kept(NAME, seed, _of_seed)]
    table = _averaged(rows)
    return Reproduction(
        NAME, table, lambda path: _draw(table, rows, path), _note(table, rows, study)
    )


def _of_seed(study: MixtureStudy, seed: int) -> list[Row]:
    mixtures = study.mixtures(seed)
    (ensemble,) = ensembles(mixtures, {"parties": (Aim.F1, study.size.teachers, VOC_DELTA)})
    most = ensemble.most_noise(len(mixtures.labels), seed)[BINARY]
    tuned = ensemble.contest(BINARY, ensemble.validation, len(mixtures.labels)).rows(0, 500)
    sigma = best_noise(tuned.claimed, most, 20.0, VOC_DELTA)
    same = _same_as_real(ensemble, most, seed)
    rows: list[Row] = []
    for number in range(ASKERS):
        asker = _asker(mixtures, ensemble, number)
        contest = binary(asker.ballots)
        claimed, exactly = contest.claimed(sigma), contest.exactly(most)
        one = _sum(asker.ballots, 1, most)
        many = {
            BEFORE: (0, 0.0),
            TEN: (answered(claimed, 10.0, VOC_DELTA), sigma),
            TWENTY: (answered(claimed, 20.0, VOC_DELTA), sigma),
            OUTCOMES: (answered(exactly, 20.0, VOC_DELTA), most),
            COUNTS: (_affordable(asker.ballots, most, 20.0), most),
            EVERY: (len(asker.queries), most),
            NO_NOISE: (len(asker.queries), 0.0),
        }
        generator = np.random.default_rng([seed, number])
        for state, (count, noise) in many.items():
            answers = _answers(asker.ballots[:, :count], noise, generator)
            row: Row = {"seed": seed, "asker": number, "state": state, "queries": count}
            row |= {"sigma": noise, "noise_on_votes": printed_deviation(noise) if noise else 0.0}
            row |= _costs(asker.ballots, contest.exactly(noise) if noise else None, count, noise)
            row |= _measured(asker.retrained(answers), mixtures)
            row["answers_BAC"] = _correct(asker.queries.truth[:count], answers)
            rows.append(row | {"same_as_real": same, "deviation": one.deviation})
        study.progress(f"askers, seed {seed}", number + 1, ASKERS)
    return rows


def _asker(mixtures: Mixtures, ensemble: VotingTeachers, number: int) -> _Asker:
    own = slice(number * ASKED, (number + 1) * ASKED)
    others = np.arange(ensemble.teachers) != number
    return _Asker(
        Part(mixtures.teachers.features[number], mixtures.teachers.truth[number]),
        mixtures.queries.rows(own),
        ensemble.queries.ballots[others, own],
    )


def _sum(ballots: NDArray[np.int8], queries: int, sigma: float) -> VoteSum:
    """Return the secure sum of the others' ballots."""
    crowd = TeacherCrowd(len(ballots))
    return VoteSum(
        Approval(ballots.shape[2]),
        queries,
        printed_deviation(sigma),
        VOC_DELTA,
        crowd.honest_survivors,
    )


def _answers(
    ballots: NDArray[np.int8], sigma: float, generator: np.random.Generator
) -> NDArray[np.int8]:
    """Name labels with more than half of the noisy votes.

    Noise shares of all teachers add up to Skellam noise, the difference of two Poisson variables.
    """
    votes = ballots.sum(axis=0, dtype=np.int64)
    if sigma > 0 and votes.size:
        honest = TeacherCrowd(len(ballots)).honest_survivors
        half = _sum(ballots, len(votes), sigma).variance * len(ballots) / honest / 2
        votes = votes + generator.poisson(half, votes.shape) - generator.poisson(half, votes.shape)
    return np.asarray(votes > len(ballots) / 2, dtype=np.int8)


def _correct(truth: NDArray[np.int8], answers: NDArray[np.int8]) -> float | str:
    """Return the answers' BAC; empty if no label is in some but not all of the queries."""
    varied = truth.any(axis=0) & ~truth.all(axis=0)
    return scores(truth, answers).balanced if varied.any() else ""


def _same_as_real(ensemble: VotingTeachers, sigma: float, seed: int) -> str:
    """Run one sum with real cryptography, and add up the same noisy ballots in the clear."""
    ballots = ensemble.queries.ballots[1:, :REAL]
    mechanism = _sum(ballots, REAL, sigma)
    inputs = mechanism.ballot.cast(ballots)

    def noise(teacher: int) -> np.random.Generator:
        return np.random.default_rng([seed, teacher])

    opened = SecureSums(TeacherCrowd(len(ballots))).run(
        mechanism, inputs, lambda teacher: noise(teacher).bytes
    )
    plain = inputs.sum(axis=0)
    for teacher in range(len(ballots)):
        plain = plain + mechanism.noise_share(mechanism.shape, noise(teacher).bytes)
    return "yes" if np.array_equal(opened.total, plain) else "no"


def _affordable(ballots: NDArray[np.int8], sigma: float, epsilon: float) -> int:
    """Return the largest number of queries of one sum whose noisy counts cost at most ε."""
    low, high = 0, ballots.shape[1] + 1
    while high - low > 1:
        middle = (low + high) // 2
        cost = _ideal_epsilon(_sum(ballots, middle, sigma), 1)
        low, high = (middle, high) if cost <= epsilon else (low, middle)
    return low


def _costs(
    ballots: NDArray[np.int8],
    exactly: NDArray[np.float64] | None,
    count: int,
    sigma: float,
) -> Row:
    """Compute ε of one answerer against the asker (by outcomes), the server, and all askers."""
    if not count or exactly is None:
        return dict.fromkeys(("outcomes_epsilon", "counts_epsilon", "three_epsilon"), "")
    spent = exactly[:count].sum(axis=0)
    mechanism = _sum(ballots, count, sigma)
    return {
        "outcomes_epsilon": renyi_epsilon(spent, ORDERS, VOC_DELTA)[0],
        "counts_epsilon": _ideal_epsilon(mechanism, 1),
        "three_epsilon": _ideal_epsilon(mechanism, ASKERS),
    }


def _ideal_epsilon(mechanism: VoteSum, askers: int) -> float:
    """Return ε of the noisy counts of several askers, if the summation were ideal.

    A real one adds about 2^-39 (1 + e^ε) to δ (thesis, Theorem 8.2), which is more than a δ of
    10⁻⁵ above ε = 15.5: cryptography gives no guarantee for larger privacy losses.
    """
    curve = renyi(mechanism.event(Unit.REPLACED_PHONE))
    return renyi_epsilon(askers * curve, FINE, VOC_DELTA)[0]


def _measured(heads: Heads, mixtures: Mixtures) -> Row:
    likely = heads.probabilities(mixtures.test.features)
    found = scores(mixtures.test.truth, (likely > _NAMED).astype(np.int8), likely)
    labels = zip(mixtures.labels, found.labels, strict=True)
    return {**found.row(), **{f"BAC {label}": float(value) for label, value in labels}}


def _averaged(rows: Sequence[Row]) -> list[Row]:
    """Compute means over askers, then over seeds with half of their 95 % intervals.

    A figure that some asker of a state lacks is left empty.
    """
    found = []
    seeds = sorted({int(row["seed"]) for row in rows})
    for state in STATES:
        out: Row = {"state": state, "theirs": _PRINTED.get(state, ""), "seeds": len(seeds)}
        own = [row for row in rows if row["state"] == state]
        gained = paired(*(_by_seed(rows, each, "BAC", seeds) for each in (state, BEFORE)))
        out["gained_BAC"] = "" if state == BEFORE else gained.mean
        wide = gained.wide if state != BEFORE else None
        out["gained_BAC_interval_95"] = "" if wide is None else wide
        skipped = {"seed", "asker", "state", "same_as_real", "deviation"}
        for name in (name for name in own[0] if name not in skipped):
            if any(row[name] == "" for row in own):
                out[name] = out[f"{name}_interval_95"] = ""
                continue
            each = estimate(_by_seed(rows, state, name, seeds))
            out[name] = each.mean
            out[f"{name}_interval_95"] = "" if each.wide is None else each.wide
        found.append(out)
    return found


def _by_seed(rows: Sequence[Row], state: str, name: str, seeds: Sequence[int]) -> list[float]:
    """Return the mean over askers for each seed."""
    return [
        float(
            np.mean(
                [float(row[name]) for row in rows if row["seed"] == seed and row["state"] == state]
            )
        )
        for seed in seeds
    ]


def claims(table: Sequence[Row]) -> list[Claim]:
    """Return the claims that answers improve an asker, in each state after the first.

    Args:
        table: Means over seeds.
    """
    balanced = {state: float(scores.split("/")[1]) for state, scores in _PRINTED.items()}
    found = []
    for row in table[1:]:
        theirs = balanced.get(str(row["state"]))
        wide = row["gained_BAC_interval_95"]
        found.append(
            Claim(
                "Answers improve the asker",
                f"BAC: {row['state']} − {BEFORE}",
                None if theirs is None else theirs - balanced[BEFORE],
                Estimate(
                    float(row["gained_BAC"]), None if wide == "" else float(wide), int(row["seeds"])
                ),
            )
        )
    return found


def _note(table: Sequence[Row], rows: Sequence[Row], study: MixtureStudy) -> str:
    shown = [
        {
            "state": row["state"],
            "theirs: ACC/BAC/AUC/MAP": row["theirs"],
            "queries": f"{float(row['queries']):.0f}",
            "noise on votes": f"{float(row['noise_on_votes']):.3g}",
            "answers' BAC": with_interval(row, "answers_BAC"),
            **{name: with_interval(row, name) for name in MEASURES},
            "ε, outcomes": with_interval(row, "outcomes_epsilon", 1),
            "ε, noisy counts": with_interval(row, "counts_epsilon", 1),
            "ε of three askers": with_interval(row, "three_epsilon", 1),
        }
        for row in table
    ]
    same = "equal" if all(row["same_as_real"] == "yes" for row in rows) else "NOT equal"
    return f"""# Collaboration through a secure sum

After Tables 4, 16 and 18 and Figure 5 of Private Multi-Winner Voting (Dziedzic et al., PoPETs 2023)
on CaPC (Choquette-Choo et al., ICLR 2021). Their data are not here; *theirs* is on Pascal VOC.

{study.described}

Each of {study.size.teachers} parties trains on its own mixtures. {ASKERS} of them ask {ASKED:,}
queries each; the {study.size.teachers - 1} others cast ballots of Binary voting, which a secure sum
adds up with Skellam noise shares. A label with more than half of the votes counts as present. The
asker retrains on its own mixtures and the answers, and is measured on {study.size.test:,} mixtures
of recordings used for nothing else, at a probability of 0.5 as in the paper on Pascal VOC.

## What holds

{claims_table(claims(table), "Dziedzic et al.", "mixtures of sound, not pictures")}

Differences are paired by seed; intervals are Student's at 95 % over seeds, of the mean over askers.
For scores by label (Figure 5), see the picture.

## What it costs

{markdown_table(shown, list(shown[0]))}

- *ε 10, 20, their accounting*: as many queries as Theorem 6 allows with σ on both counts, spent for
  each asker. {ASKERS} askers cost an answerer {ASKERS}ε by addition; composed, the last column.
- *ε 20, exact outcomes*: a guardian publishes outcomes alone, with the largest noise that is
  accurate enough. This number of queries depends on the votes, as the one above does, and would
  have to be released privately too. *ε 20, noisy counts*: by the secure sum, whatever the votes.
- *All queries* show the gain of more answers, with the same noise and with none.
- The last three columns are for one answerer: against an asker who sees outcomes, and against a
  server that sees noisy counts, if the summation were ideal. A real one has no guarantee at δ 10⁻⁵
  above ε 15.5. These ε use the tightest known conversion, numbers of queries
  ε = R + ln(1/δ)/(λ − 1) as in the paper.
- The counts of {REAL} queries were added up with real cryptography as well, among
  {study.size.teachers - 1} participants: {same} to the sum of the same noisy ballots in the clear.

CaPC encrypts queries and models. Here answerers see the queries, and the server sees noisy counts;
ballots and models stay hidden. Do not query a mixture that identifies the recorded person.

{study.served()}
"""


def _draw(table: Sequence[Row], rows: Sequence[Row], path: Path) -> None:
    labels = [name for name in rows[0] if str(name).startswith("BAC ")]
    charts = [lambda axis: _draw_labels(axis, table, labels), lambda axis: _draw_all(axis, table)]
    multiples(path, (13, 8), 1, charts)


def _draw_labels(axis: Any, table: Sequence[Row], labels: Sequence[str]) -> None:
    places = np.arange(len(labels))
    by_state = {row["state"]: row for row in table}
    drawn = (BEFORE, TWENTY, OUTCOMES, COUNTS)
    colours = ("#7f7f7f", "#1f77b4", "#2ca02c", "#d62728")
    for offset, (state, colour) in enumerate(zip(drawn, colours, strict=True)):
        heights = [float(by_state[state][label]) for label in labels]
        axis.bar(places + 0.2 * (offset - 1.5), heights, 0.2, label=state, color=colour)
        axis.axhline(float(by_state[state]["BAC"]), color=colour, linestyle="--", linewidth=1)
    axis.set_xticks(places, [label.removeprefix("BAC ") for label in labels], rotation=45)
    axis.set_ylim(0.45, 1)
    axis.set_ylabel("balanced accuracy of askers (dashed: mean)")
    axis.legend(fontsize=8, ncols=4, loc="upper left")


def _draw_all(axis: Any, table: Sequence[Row]) -> None:
    for measure, marker in zip(MEASURES, "osd^", strict=True):
        curve(axis, range(len(table)), table, measure, marker=marker, capsize=3, label=measure)
    axis.set_xticks(
        range(len(table)),
        [f"{row['state']}\n{float(row['queries']):.0f} queries" for row in table],
        fontsize=8,
    )
    axis.legend(fontsize=8)
