"""`earshot reproduce audioset-phones`: phones as teachers, by a curator and by a secure sum.

Thousands of phones with a few mixtures each replace the fifty teachers of Muschiol (2021). With a
secure sum no one sees their ballots, and ε protects a whole phone. The same ballots are counted
both ways.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earshot_models.votes.electorate import Electorate
from earshot_models.votes.output_ballots import Outputs
from earshot_models.votes.rules.gnthreshold import GNThresholdRule
from earshot_models.votes.tally.budgets import QueryBudget
from earshot_models.votes.tally.federated import Federated
from earshot_models.votes.tally.labelling import LabellingRequest, run
from earshot_models.votes.tally.secure_sums import TeacherCrowd as Participants
from earshot_models.votes.tally.tallies import Counter, SumSettings
from earshot_protocol import checks
from earshot_protocol.arrays import Numbers
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.progress import Progress, silent
from earshot_protocol.voting.vote_sums import VoteSum
from earshot_simulations.reporting.tables import markdown_table
from earshot_simulations.sweeps.estimate import paired
from earshot_studies.kit.kept import Kept, rows_at
from earshot_studies.kit.mixtures.embedding import Part
from earshot_studies.kit.mixtures.ensembles import Aim, thresholds
from earshot_studies.kit.outcome import Reproduction, Row, means, with_interval
from earshot_studies.kit.pictures import bars, multiples
from earshot_studies.muschiol.taggers.phones import PhoneOutputs, answers, ballots, crowd
from earshot_studies.muschiol.taggers.powers import contents
from earshot_studies.muschiol.taggers.study import TaggerStudy, TaggerStudySize
from earshot_studies.muschiol.tagging.metrics import scores

NAME = "audioset-phones"
NO_NOISE, CURATOR, REAL, LAW = "no noise", "curator", "secure sum", "the law of the secure sum"
ALONE = "one phone alone"

_COLUMNS = ("answers_map", "answers_macro_f1", "answers_micro_f1", "student_map",
            "student_macro_f1", "student_micro_f1")  # fmt: skip
_ALONE = 20
"""Phones whose own answers are scored."""
_RIDGE = 50.0
"""Ridge of a student on noisy counts."""


@dataclass(frozen=True)
class PhonesPlan:
    """Settings of the study.

    Attributes:
        data: Folder that holds `esc10`, `fsdd` and perhaps `free_sounds`.
        work: Folder of each seed's kept rows.
        phones: Number of phones, M, from 3.
        mixtures: Mixtures of each phone.
        samples: Samples that all phones vote on, in one sum.
        epsilon: Cost ε of all of them together, for a phone that is left out.
        delta: Parameter δ of the same guarantee.
        most: Votes of a phone and sample, v.
        threshold: Threshold th, a public share of the phones.
        seeds: Number of crowds, each with its own mixtures and noise.
        real: Crowds whose sums use real cryptography, all by default; the other sums are sampled
            from their distribution.
        sums: Settings of a sum: tolerated dropout and corruption, and the share that vanishes.
        progress: Callback that receives the progress.

    Raises:
        InvalidParametersError: A number is out of range.
    """

    data: Path
    work: Path
    phones: int = 3000
    mixtures: int = 40
    samples: int = 500
    epsilon: float = 1.0
    delta: float = 1e-6
    most: int = 3
    threshold: float = 0.2
    seeds: int = 5
    real: int | None = None
    sums: SumSettings = field(default_factory=lambda: SumSettings(vanishing=0.05))
    progress: Progress = silent

    def __post_init__(self) -> None:
        checks.whole("phones", self.phones, 3)
        for name in ("mixtures", "samples", "most", "seeds"):
            checks.whole(name, getattr(self, name))
        if self.real is not None:
            checks.whole("real", self.real, 0, self.seeds)
        checks.share("threshold", self.threshold)
        QueryBudget(self.epsilon, self.delta, Unit.PHONE, self.phones * self.mixtures)

    @property
    def numbers(self) -> range:
        """Seeds from 1 on; 0 was used in development."""
        return range(1, self.seeds + 1)

    def cryptography(self, seed: int) -> bool:
        """Return whether this crowd's sum uses real cryptography."""
        return self.real is None or seed <= self.real

    def place(self, name: str, seed: int, suffix: str = ".json") -> Path:
        """Return the path of a crowd's kept work, which other sound or settings do not share.

        Args:
            name: Name of the work.
            seed: Seed of the crowd.
            suffix: Suffix of the path.
        """
        own = {name: value for name, value in asdict(self).items() if name not in _NOT_OF_A_SEED}
        settings = [contents(self.data), own | {"real": self.cryptography(seed)}]
        return Kept(self.work).place(f"{name}-{seed}", settings, suffix)

    @property
    def participants(self) -> Participants:
        """Participants of a sum."""
        return Participants(self.phones, self.sums.dropout, self.sums.corrupted)

    def deviation(self, labels: int) -> float:
        """Compute the least noise σ, in votes, with which all samples cost ε.

        The result is at most a thousandth larger.

        Raises:
            InvalidParametersError: No noise suffices, as secure sums may use up δ.
        """

        def cost(sigma: float) -> float:
            ballot, survivors = Outputs(labels, self.most), self.participants.honest_survivors
            return VoteSum(ballot, self.samples, sigma, self.delta, survivors).cost(
                Unit.PHONE
            ).epsilon  # fmt: skip

        low, high = 1e-3, 1e7
        if cost(high) > self.epsilon:
            raise InvalidParametersError(
                f"epsilon={self.epsilon:g} with delta={self.delta:g}: no noise is enough; give a "
                "larger delta"
            )
        while high / low > 1.001:
            middle = (low * high) ** 0.5
            low, high = (low, middle) if cost(middle) <= self.epsilon else (middle, high)
        return high


def reproduce(plan: PhonesPlan) -> Reproduction:
    """Compare both tallies; rows of each seed are kept in `plan.work` and read from there."""
    rows = [row for seed in plan.numbers for row in _of_seed(plan, seed)]
    tallies = dict.fromkeys(str(row["tally"]) for row in rows)
    averaged: list[Row] = []
    for name in tallies:
        group = [row for row in rows if row["tally"] == name]
        first: Row = {"tally": name, "seeds": len(group)}
        averaged.append(first | means(group, _COLUMNS))
    return Reproduction(NAME, rows, lambda path: _draw(averaged, path), _note(plan, rows, averaged))


def _of_seed(plan: PhonesPlan, seed: int) -> list[Row]:
    return rows_at(plan.place("phones", seed), lambda: list(measure(plan, seed)))


_NOT_OF_A_SEED = ("data", "work", "seeds", "real", "progress")


def measure(plan: PhonesPlan, seed: int) -> Iterator[Row]:
    """Score one crowd's answers, and students of them, without noise and by each tally.

    Args:
        plan: Plan of all crowds.
        seed: Seed of mixtures and noise, except the noise of a sum with real cryptography.
    """
    size = TaggerStudySize(plan.phones * plan.mixtures, queries=plan.samples)
    study = TaggerStudy(plan.data, plan.work, size)

    def told(what: str, done: int, total: int, line: str | None = None) -> None:
        plan.progress(f"crowd {seed} of {plan.seeds}: {what}", done, total, line)

    people = crowd(study.material(seed), plan.phones, progress=told)
    cast = ballots(people.probabilities, plan.most)
    sigma = plan.deviation(cast.shape[2])
    generator = np.random.default_rng([seed, 0])
    whole = cast.sum(axis=0, dtype=np.float64)
    alone = [
        _right(people.queries.truth, each, named)
        for each, named in zip(people.probabilities[:_ALONE], cast[:_ALONE], strict=True)
    ]
    one = means(alone, list(alone[0]))
    nothing: Row = dict.fromkeys(_COLUMNS, "")
    own: Row = {name: one[name] for name in alone[0]}
    yield {"tally": ALONE, "seed": seed, **nothing, **own, **_EFFORTLESS}
    noisy = whole + sigma * generator.standard_normal(whole.shape)
    for name, counts in ((NO_NOISE, whole), (CURATOR, noisy)):
        yield _row(plan, seed, name, people, counts / plan.phones, _EFFORTLESS)
    if plan.cryptography(seed):
        shares, effort = _real(plan, seed, cast, sigma)
        yield _row(plan, seed, REAL, people, shares, effort)
    else:
        shares = _ideal(plan, cast, sigma, generator)
        yield _row(plan, seed, LAW, people, shares, _EFFORTLESS)


_EFFORTLESS: Row = dict.fromkeys(
    ("cpu_seconds", "phone_cpu_ms", "server_cpu_seconds", "kb_up", "kb_down", "survivors"), ""
)


def _ideal(
    plan: PhonesPlan, cast: NDArray[np.int8], sigma: float, generator: np.random.Generator
) -> Numbers:
    """Sample a sum's result: shares of the phones that stay, with the noise that they add."""
    gone = generator.choice(plan.phones, int(plan.sums.vanishing * plan.phones), replace=False)
    stay = np.delete(cast, gone, axis=0)
    rate = sigma**2 / 2 * len(stay) / plan.participants.honest_survivors
    shape = cast.shape[1:]
    noise = generator.poisson(rate, shape) - generator.poisson(rate, shape)
    counts: Numbers = stay.sum(axis=0, dtype=np.int64) + noise
    return counts / len(stay)


def _real(plan: PhonesPlan, seed: int, cast: NDArray[np.int8], sigma: float) -> tuple[Numbers, Row]:
    """Run the tally of `earshot pate label --tally federated`; return its shares and effort."""
    folder = plan.place("sum", seed, "")
    folder.mkdir(exist_ok=True)
    cut = plan.threshold * plan.phones
    rule = GNThresholdRule(sigma=sigma, winners=plan.most, cut=cut)
    budget = QueryBudget(plan.epsilon, plan.delta, Unit.PHONE, plan.phones * plan.mixtures)
    sums = SumSettings(plan.sums.dropout, plan.sums.corrupted, plan.sums.vanishing, plan.samples)
    request = LabellingRequest(rule, budget, Counter.FEDERATED, sums)
    voters = Electorate(cast, cast.shape[2])  # type: ignore[arg-type]
    outcome = run(request, voters, folder, progress=plan.progress)
    (seen,) = outcome.labelled.sights
    effort: Row = dict(_EFFORTLESS)
    tally = outcome.tally
    if isinstance(tally, Federated) and tally.sums.effort.sums:
        spent = tally.sums.effort
        effort = {
            "cpu_seconds": spent.teacher_seconds + spent.server_seconds,
            "phone_cpu_ms": 1000 * spent.teacher_seconds / spent.answering,
            "server_cpu_seconds": spent.server_seconds,
            "kb_up": spent.bytes_up / spent.answering / 1000,
            "kb_down": spent.bytes_down / spent.answering / 1000,
            "survivors": seen.voters,
        }
    return seen.total / seen.voters, effort


def _row(
    plan: PhonesPlan,
    seed: int,
    name: str,
    people: PhoneOutputs,
    shares: Numbers,
    effort: Row,
) -> Row:
    """Score answers, and a student of them, by shares of the phones (samples, labels)."""
    answered = _right(people.queries.truth, shares, shares > plan.threshold)
    # Training on noisy counts is post-processing and costs no ε.
    student = Part(people.queries.features, people.queries.truth)
    said = [
        _student(student.features, shares, part.features)
        for part in (people.validation, people.test)
    ]
    limits = thresholds(said[0], people.validation.truth, Aim.F1)
    learned = _right(people.test.truth, said[1], said[1] > limits)
    renamed = {key.replace("answers", "student"): value for key, value in learned.items()}
    return {"tally": name, "seed": seed, **answered, **renamed, **effort}


def _student(features: NDArray[np.floating], shares: Numbers, asked: NDArray[Any]) -> Numbers:
    found = answers(
        features[None].astype(np.float64), shares[None], asked.astype(np.float64), _RIDGE
    )
    first: Numbers = found[0]
    return first


def _right(truth: NDArray[np.int8], likely: NDArray[Any], named: NDArray[Any]) -> Row:
    found = scores(truth, named, likely)
    return {
        "answers_map": float(found.mean_average_precision or 0.0),
        "answers_macro_f1": found.macro_f1,
        "answers_micro_f1": found.micro_f1,
    }


def _note(plan: PhonesPlan, rows: Sequence[Row], averaged: Sequence[Row]) -> str:
    labels = 20
    sigma = plan.deviation(labels)
    titles = {
        "answers_map": "answers: mAP",
        "answers_macro_f1": "macro F1",
        "answers_micro_f1": "micro F1",
        "student_map": "student: mAP",
        "student_macro_f1": "macro F1 ",
        "student_micro_f1": "micro F1 ",
    }
    table = [
        {"tally": row["tally"], "seeds": row["seeds"]}
        | {title: with_interval(row, name) for name, title in titles.items()}
        for row in averaged
    ]
    apart = {
        name: paired(
            [float(row[name]) for row in rows if row["tally"] in (REAL, LAW)],
            [float(row[name]) for row in rows if row["tally"] == CURATOR],
        )
        for name in ("answers_map", "student_map")
    }
    real = [row for row in rows if row["tally"] == REAL and row["cpu_seconds"] != ""]
    efforts = "\n".join(
        f"- Crowd {row['seed']}: {float(row['cpu_seconds']):.0f} s of CPU in all, of which "
        f"{float(row['server_cpu_seconds']):.0f} the server's; a phone "
        f"{float(row['phone_cpu_ms']):.1f} ms, {float(row['kb_up']):.0f} kB up and "
        f"{float(row['kb_down']):.1f} kB down; {row['survivors']} phones stayed."
        for row in real
    )
    gone = f"{plan.sums.vanishing:.0%}"
    return f"""# {plan.phones:,} phones as teachers

Each has {plan.mixtures} mixtures of its own, votes for the {plan.most} labels that it finds
likeliest in each of {plan.samples} samples, and is protected with ε = {plan.epsilon:g} at δ =
{plan.delta:g} (left out, its noise share still added). That takes noise of σ = {sigma:.0f} votes,
{sigma / plan.phones:.3f} of the phones; σ_e = .3 of Muschiol (2021) on fifty teachers is .077.

{markdown_table(table, list(table[0]))}

*Curator*: Gaussian noise of σ on every count. *Secure sum*: the tally of `earshot pate label`, with
real cryptography, Skellam noise in shares, {gone} of the phones gone midway, and counts over those
who stayed; its law draws the same without cryptography. Noisy counts of all are published, or seen,
at the same ε. Answers name the labels that more than {plan.threshold:g} of the phones name, a
public threshold. Students learn the noisy shares of the {plan.samples} samples and are scored on
others. Intervals are Student's at 95 % over crowds.

The secure sum less the curator, crowd by crowd: mAP of answers {apart["answers_map"]}, of students
{apart["student_map"]}.

{efforts}"""


def _draw(rows: Sequence[Row], path: Path) -> None:
    multiples(path, (8, 4), 1, [lambda axis: _draw_tallies(axis, rows)], dpi=120)


def _draw_tallies(axis: Any, rows: Sequence[Row]) -> None:
    for offset, name, label, colour in (
        (-0.2, "answers_map", "answers", "#1f77b4"),
        (0.2, "student_map", "a student of them, on other mixtures", "#ff7f0e"),
    ):
        there = [place for place, row in enumerate(rows) if row[name] != ""]
        own = [rows[place] for place in there]
        look = {"label": label, "color": colour, "capsize": 3}
        bars(axis, np.array(there) + offset, own, name, 0.38, **look)
    axis.set_xticks(np.arange(len(rows)), [str(row["tally"]).replace(", ", ",\n") for row in rows])
    axis.set_ylabel("mAP")
    axis.legend()
