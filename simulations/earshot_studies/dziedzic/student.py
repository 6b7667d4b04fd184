"""Students of private answers beside DP-SGD: Tables 1 and 2.

Both tables are of Private Multi-Winner Voting (Dziedzic et al., PoPETs 2023); here mixtures of real
sounds replace their data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earshot_protocol import checks
from earshot_protocol.voting.teacher_ballots import NONE
from earshot_simulations.reporting.tables import markdown_table
from earshot_studies.dziedzic.contests import Contest, answered
from earshot_studies.dziedzic.multi_winner import (
    BINARY,
    EPSILON,
    POWERSET,
    VOC_DELTA,
    MixtureStudy,
    VotingTeachers,
    best_noise,
    ensembles,
)
from earshot_studies.dziedzic.scores import MEASURES, scores
from earshot_studies.kit.dp_sgd import training_epsilon, training_noise
from earshot_studies.kit.mixtures.embedding import Mixtures, Part
from earshot_studies.kit.mixtures.ensembles import PENALTY, Aim, Heads, trained
from earshot_studies.kit.outcome import Reproduction, Row, means, with_interval
from earshot_studies.kit.pictures import bars, multiples
from earshot_studies.kit.printed import printed_figures

NAME = "multi-winner-student"

_SPEEDS = (4.0, 16.0, 40.0)
"""Learning rates of DP-SGD, of which the best on validation mixtures is taken."""
_NAMED = 0.5
"""Probability above which a label counts as named."""
_SURE = 0.95
"""Least probability of a pseudo-label, present or absent, in an unanswered mixture."""
_PSEUDO_WEIGHT = 0.2
_ROUNDS = 2

NON_PRIVATE, DP_SGD = "non-private", "DP-SGD"
CLAIMED, SOUND = "their accounting", "sound: noisy counts"
EXACT = "exact outcomes"


@dataclass(frozen=True)
class PaperTable:
    """A table of the paper.

    Attributes:
        name: Name of the table.
        labels: Number of labels, the first ones.
        aim: Aim of the teachers' thresholds.
        epsilon, delta: Budget that is spent.
        rules: Rules whose students are trained.
        theirs: Numbers of the paper, by method: ACC, BAC, AUC, MAP, or AUC alone.
    """

    name: str
    labels: int
    aim: Aim
    epsilon: float
    delta: float
    rules: tuple[str, ...]
    theirs: Mapping[str, str]


_PRINTED = printed_figures(__package__)["students"]
TABLES = (
    PaperTable(
        "Table 1 (VOC)", 20, Aim.F1, EPSILON, VOC_DELTA, (POWERSET, BINARY), _PRINTED["voc"]
    ),
    PaperTable("Table 2 (CheXpert)", 5, Aim.BALANCED, 8.0, 1e-4, (BINARY,), _PRINTED["chexpert"]),
)


def reproduce(study: MixtureStudy) -> Reproduction:
    """Make both tables."""
    rows = [row for seed in study.reported for row in study.kept(NAME, seed, _of_seed)]
    table = _averaged(rows)
    return Reproduction(NAME, table, lambda path: _draw(table, path), _note(table, study))


def _of_seed(study: MixtureStudy, seed: int) -> list[Row]:
    mixtures, rows = study.mixtures(seed), []
    for done, table in enumerate(TABLES, start=1):
        names = {table.name: (table.aim, study.size.teachers, table.delta)}
        (ensemble,) = ensembles(mixtures, names)
        own = _first(mixtures, table.labels)
        for method, queries, epsilon, heads in _methods(ensemble, own, table, seed):
            row: Row = {"seed": seed, "table": table.name, "method": method}
            row |= {"theirs": table.theirs.get(method, ""), "queries": queries, "epsilon": epsilon}
            rows.append(row | _measured(heads, own))
        study.progress(f"students, seed {seed}", done, len(TABLES))
    return rows


def _first(mixtures: Mixtures, labels: int) -> Mixtures:
    """Return the mixtures with the first labels only; those with none of them are kept."""

    def part(whole: Part) -> Part:
        return Part(whole.features, whole.truth[..., :labels])

    return replace(
        mixtures,
        labels=mixtures.labels[:labels],
        teachers=part(mixtures.teachers),
        validation=part(mixtures.validation),
        queries=part(mixtures.queries),
        test=part(mixtures.test),
        served=mixtures.served[:labels],
    )


def _methods(
    ensemble: VotingTeachers, mixtures: Mixtures, table: PaperTable, seed: int
) -> Iterator[tuple[str, int | str, float | str, Heads]]:
    """Yield each method: its name, queries answered, ε by its own accounting, and its heads."""
    shape = mixtures.teachers.features.shape
    whole = Part(
        mixtures.teachers.features.reshape(-1, shape[-1]),
        mixtures.teachers.truth.reshape(-1, table.labels),
    )
    yield NON_PRIVATE, "", "", trained(whole)
    yield DP_SGD, "", *_privately(whole, mixtures, table, seed)
    most = ensemble.most_noise(table.labels, seed)
    for rule in table.rules:
        tuned = ensemble.contest(rule, ensemble.validation, table.labels).rows(0, 500)
        sigma = best_noise(tuned.claimed, most[rule], table.epsilon, table.delta)
        contest = ensemble.contest(rule, ensemble.queries, table.labels)
        # Two thousand queries exceed each of these budgets.
        first = contest.rows(0, 2000)
        ways = {CLAIMED: (sigma, _count(first.claimed(sigma), table))}
        if rule == BINARY:
            ways[EXACT] = most[rule], _count(first.exactly(most[rule]), table)
        ways[SOUND] = most[rule], _count(contest.counted(most[rule]), table)
        for way, (noise, count) in ways.items():
            heads = _student(contest, mixtures, noise, count, seed)
            yield f"{rule}, {way}", count, table.epsilon, heads


def _count(
    divergences: np.ndarray[tuple[int, ...], np.dtype[np.float64]], table: PaperTable
) -> int:
    return answered(divergences, table.epsilon, table.delta)


def _privately(
    whole: Part, mixtures: Mixtures, table: PaperTable, seed: int
) -> tuple[float, Heads]:
    """Return ε and heads of the best learning rate on validation, a choice at no accounted cost."""
    training = DpSgdTraining()
    noise = training_noise(table.epsilon, training.rate, training.steps, table.delta)
    found = []
    for speed in _SPEEDS:
        generator = np.random.default_rng([seed, int(speed)])
        heads = private_heads(whole, replace(training, speed=speed), noise, generator)
        likely = heads.probabilities(mixtures.validation.features)
        named = (likely > _NAMED).astype(np.int8)
        found.append((scores(mixtures.validation.truth, named, likely).area, speed, heads))
    best: tuple[float, float, Heads] = max(found, key=lambda each: each[:2])
    return training_epsilon(noise, training.rate, training.steps, table.delta), best[2]


def _student(contest: Contest, mixtures: Mixtures, sigma: float, count: int, seed: int) -> Heads:
    generator = np.random.default_rng([seed, count])
    queries = mixtures.queries
    answers = contest.rows(0, max(count, 1)).winners(sigma, generator)[:count].astype(np.int8)
    return student(Part(queries.features[:count], answers), queries.features[count:])


def _measured(heads: Heads, mixtures: Mixtures) -> Row:
    likely = heads.probabilities(mixtures.test.features)
    truth = mixtures.test.truth
    found = scores(truth, (likely > _NAMED).astype(np.int8), likely)
    return {**found.row(), "labels_measured": found.measured}


def _averaged(rows: Sequence[Row]) -> list[Row]:
    """Compute means over seeds with half of their 95 % intervals."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((str(row["table"]), str(row["method"])), []).append(row)
    found = []
    for (table, method), group in groups.items():
        out: Row = {"table": table, "method": method, "theirs": group[0]["theirs"]}
        out["seeds"] = len(group)
        found.append(out | means(group, ("queries", "epsilon", *MEASURES, "labels_measured")))
    return found


def _note(table: Sequence[Row], study: MixtureStudy) -> str:
    columns: dict[str, Callable[[Row], str]] = {
        "method": lambda row: str(row["method"]),
        "theirs: ACC/BAC/AUC/MAP": lambda row: str(row["theirs"]),
        "queries": lambda row: "–" if row["queries"] == "" else f"{float(row['queries']):.0f}",
        "ε": lambda row: "–" if row["epsilon"] == "" else f"{float(row['epsilon']):.1f}",
        **{name: (lambda row, name=name: with_interval(row, name)) for name in MEASURES},  # type: ignore[misc]
    }
    sections = "\n\n".join(
        f"## {each.name}: {each.labels} labels, ε {each.epsilon:g}, δ {each.delta:g}\n\n"
        + markdown_table(
            [
                {name: column(row) for name, column in columns.items()}
                for row in table
                if row["table"] == each.name
            ],
            list(columns),
        )
        for each in TABLES
    )
    training = DpSgdTraining()
    return f"""# Students of private answers, beside DP-SGD

After Tables 1 and 2 of Private Multi-Winner Voting (Dziedzic et al., PoPETs 2023). Their data are
not here: orderings and differences can be compared, scores cannot.

{study.described}

All methods are linear heads on the same public features. *Non-private* and *DP-SGD* train on the
mixtures of all teachers together: {training.steps} batches, each example in a batch with
probability {training.rate:g}, gradients clipped to {training.norm:g}, noise by the privacy-loss
accountant of dp_accounting, learning rate the best of {", ".join(f"{s:g}" for s in _SPEEDS)} on
validation mixtures (a choice that is not accounted for, as in the paper). *Students* learn from
answered queries, then from their own confident predictions on the others (pseudo-labels; the paper
has MixMatch). Labels count as named at a probability of 0.5. A label that is in no test mixture, or
in all, would be left out; none is.

{sections}

- *Their accounting*: Theorem 6 with σ on both counts, the σ with which most are answered.
- *Exact outcomes*: a curator who publishes outcomes alone, soundly and in both directions; the
  number of queries depends on the votes, as theirs does. *Sound: noisy counts*: whatever the votes.
- ε of DP-SGD is for one mixture more or less; ε of votes is for one teacher that answers
  differently, because of one changed mixture or of all its mixtures.

## Where it differs

In the paper DP-SGD comes last; its tuning is not stated. Here both sides have the same public
features and train a linear head, for which DP-SGD is hard to beat at so large an ε: learning from
answers suits models without gradients, and a unit of protection of all data of a teacher. Binary
comes before Powerset, as in the paper. Intervals are Student's at 95 % over seeds.

{study.served()}
"""


def _draw(table: Sequence[Row], path: Path) -> None:
    def chart(own: PaperTable, axis: Any) -> None:
        rows = [row for row in table if row["table"] == own.name]
        places = np.arange(len(rows))
        for offset, name in enumerate(MEASURES):
            bars(axis, places + 0.2 * (offset - 1.5), rows, name, 0.2, capsize=2, label=name)
        axis.set_xticks(places, [str(row["method"]).replace(" ", "\n") for row in rows], fontsize=7)
        axis.set_title(f"{own.name}: {own.labels} labels, ε {own.epsilon:g}")
        axis.set_ylim(0, 1.02)
        axis.legend(fontsize=8, ncols=4, loc="lower center")

    multiples(path, (13, 5.5), len(TABLES), [partial(chart, each) for each in TABLES])


def student(answered: Part, unanswered: NDArray[np.float32], penalty: float = PENALTY) -> Heads:
    """Train on answers, then on the model's confident predictions (pseudo-labels; Lee 2013).

    The paper's student is MixMatch on the same two sets.

    Args:
        answered: Queries, with 1, 0 or `NONE` for each label.
        unanswered: Features of other public mixtures, (rows, features).
        penalty: Inverse strength of the regularization.
    """
    known = (answered.truth != NONE).astype(np.float64)
    labels = np.where(answered.truth == NONE, 0, answered.truth).astype(np.int8)
    heads = trained(Part(answered.features, labels), penalty, known)
    if not len(unanswered):
        return heads
    for _ in range(_ROUNDS):
        likely = heads.probabilities(unanswered)
        sure = np.abs(likely - 0.5) >= _SURE - 0.5
        both = Part(
            np.concatenate([answered.features, unanswered]),
            np.concatenate([labels, (likely > 0.5).astype(np.int8)]),
        )
        heads = trained(both, penalty, np.concatenate([known, _PSEUDO_WEIGHT * sure]))
    return heads


@dataclass(frozen=True)
class DpSgdTraining:
    """The settings of DP-SGD.

    Attributes:
        steps: Number of batches.
        rate: Probability with which each example is in a batch, independently.
        norm: L2 norm to which a gradient is clipped.
        speed: Learning rate, on the mean gradient.
    """

    steps: int = 300
    rate: float = 0.1
    norm: float = 1.0
    speed: float = 16.0

    def __post_init__(self) -> None:
        checks.whole("steps", self.steps)
        checks.positive("rate", self.rate, 1)
        checks.positive("norm", self.norm)
        checks.positive("speed", self.speed)


def private_heads(
    part: Part, training: DpSgdTraining, noise: float, generator: np.random.Generator
) -> Heads:
    """Fit logistic regressions by DP-SGD, each example clipped over all labels together.

    The gradient of an example is the outer product of its errors p − y and its features, the bias
    included, so its norm is the product of their norms. An example whose features have no finite
    length counts as zeros: it must not contribute more than its share of the sum.

    Args:
        part: Labelled mixtures.
        training: Settings of the training.
        noise: Standard deviation over the clipping norm; see `kit.dp_sgd`.
        generator: Generator of batches and noise; only for simulations.
    """
    rows = np.column_stack([part.features, np.ones(len(part))]).astype(np.float64)
    # Long features would all be clipped: a public constant brings them to a length of about one.
    rows /= np.sqrt(rows.shape[1])
    with np.errstate(over="ignore"):
        lengths = np.linalg.norm(rows, axis=1)
    rows[~np.isfinite(lengths)] = 0.0
    lengths[~np.isfinite(lengths)] = 0.0
    labels = part.truth.astype(np.float64)
    weights = np.zeros((rows.shape[1], labels.shape[1]))
    expected = training.rate * len(rows)
    for _ in range(training.steps):
        batch = np.flatnonzero(generator.random(len(rows)) < training.rate)
        errors = 1 / (1 + np.exp(-(rows[batch] @ weights))) - labels[batch]
        norms = lengths[batch] * np.linalg.norm(errors, axis=1)
        errors *= np.minimum(1.0, training.norm / np.maximum(norms, 1e-12))[:, None]
        total = rows[batch].T @ errors
        total += noise * training.norm * generator.normal(size=total.shape)
        weights -= training.speed * total / expected
    weights /= np.sqrt(rows.shape[1])
    return Heads(weights[:-1], weights[-1])
