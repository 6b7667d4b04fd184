"""`earshot pate`: votes of teachers on samples that nobody owns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy.typing as npt
from cyclopts import App, Parameter

from earshot_models.commands.output import prepare_folder
from earshot_models.commands.progress import shown
from earshot_models.votes.confident_check import Check
from earshot_models.votes.rules.mechanisms import THRESHOLDS, Mechanism, Name
from earshot_models.votes.tally.dependent import Cost
from earshot_models.votes.tally.tallies import Counter, Sums
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.privacy.mechanisms import Unit
from earshot_simulations.commands import pate_generate, pate_tag

if TYPE_CHECKING:
    from earshot_models.votes.tally.votes import Electorate

app = App(
    name="pate",
    help="Let an ensemble of teachers label samples in private, and learn from its answers.",
)

_SUMS = Sums()

Which = Annotated[Name, Parameter(help="Rule by which answers come from votes.")]
Sigma = Annotated[
    float, Parameter(help="Deviation of the noise on a count, in votes; for lnmax its scale 1/γ.")
]
CheckSigma = Annotated[
    float | None, Parameter(help="Deviation of the noise on the check, in votes.")
]
Threshold = Annotated[
    float | None, Parameter(help="Votes that the check asks for, noise included.")
]
Winners = Annotated[
    int | None,
    Parameter(
        help="v: labels of a set in powerset voting; against thresholds, largest outputs of a "
        "teacher, which alone count."
    ),
]
Grid = Annotated[
    str | None,
    Parameter(
        help="Thresholds in votes, by commas; grid-threshold takes one that is far from all counts."
    ),
]
Scale = Annotated[
    float | None,
    Parameter(help="Scale of a curator's Gumbel noise on the choice from --grid, in votes."),
]
Epsilon = Annotated[float, Parameter(help="ε of the budget for all queries together.")]
Delta = Annotated[float, Parameter(help="δ of the budget, below 1 over the records.")]
Whose = Annotated[
    Unit, Parameter(help="Unit of the budget: phone, a teacher left out, or replaced-phone.")
]
Counts = Annotated[
    Counter,
    Parameter(
        "--tally", help="Who counts: a trusted curator (central), or secure sums (federated)."
    ),
]
Out = Annotated[Path, Parameter(help="New folder, or one in which a run was cut short.")]
Overwrite = Annotated[
    bool,
    Parameter("--overwrite", help="Replace the files of this command where --out has them."),
]


@app.command
def label(
    votes: Path,
    /,
    *,
    mechanism: Which,
    sigma: Sigma,
    epsilon: Epsilon,
    delta: Delta,
    out: Out,
    check_sigma: CheckSigma = None,
    threshold: Threshold = None,
    tally: Counts = Counter.CENTRAL,
    unit: Whose = Unit.REPLACED_PHONE,
    teachers: int | None = None,
    classes: int | None = None,
    samples: Path | None = None,
    names: str | None = None,
    records: int | None = None,
    scores: Path | None = None,
    confidence: float | None = None,
    tau: float | None = None,
    norm: int = 2,
    winners: Winners = None,
    cut: float | None = None,
    grid: Grid = None,
    scale: Scale = None,
    weights: Path | None = None,
    most: int | None = None,
    votes_cost: Cost | None = None,
    at_once: int = _SUMS.at_once,
    dropout: float = _SUMS.dropout,
    corrupted: float = _SUMS.corrupted,
    overwrite: Overwrite = False,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
) -> None:
    """Ask about queries until the budget is spent; a run that was cut short goes on.

    Args:
        votes: A .npy of counts (queries × classes), of classes with --classes (teachers ×
            queries), or of labels (teachers × queries × labels; against thresholds also
            probabilities); or the folder of an ensemble, which votes on --samples.
        teachers: Number of teachers, which votes are checked against.
        classes: Number of classes; says that the file holds teachers' classes, not counts.
        samples: .npy of samples on which the ensemble of a folder votes.
        names: Classes that the ensemble must know, in order, by commas.
        records: Records that all teachers learned from together; by default one each.
        scores: .npy of a student's probabilities (queries × classes).
        confidence: Student confidence above which its own answer is used.
        tau: Length of a clipped ballot (τ).
        norm: Norm used to clip ballots: 1 or 2.
        cut: Votes above which a label is given; by default half of the teachers.
        weights: .npy of a whole number for each teacher: personal budgets.
        most: Most queries to ask about.
        votes_cost: Publish, once and with noise, what answers cost by the votes that were
            cast.
        at_once: Queries of one secure sum.
        dropout: Share of the teachers that a sum can do without (ρ).
        corrupted: Share of the teachers that may be corrupted (γ).
        as_json: Print result.json, and nothing else.
    """
    from earshot_models.votes.tally import journal, result
    from earshot_models.votes.tally.budgets import Budget
    from earshot_models.votes.tally.run import RESUMES, Request, run

    voters = _voters(votes, mechanism, teachers, classes, samples, names)
    request = Request(
        Mechanism(
            mechanism,
            voters.classes,
            sigma,
            _check(mechanism, tally, check_sigma, threshold),
            confidence=confidence,
            tau=tau,
            norm=norm,
            most=winners,
            cut=cut,
            grid=_grid(grid),
            scale=scale,
            bar=_bar(mechanism, tally, check_sigma, threshold),
        ),
        Budget(epsilon, delta, unit, voters.teachers if records is None else records),
        tally,
        Sums(dropout, corrupted, at_once=at_once),
        most,
        votes_cost,
    )
    weighed, guesses = (None if path is None else _load(path) for path in (weights, scores))
    # A journal says whose the other files are.
    mine = result.FILES if (out / journal.FILE).exists() else ()
    prepare_folder(out, result.FILES, overwrite, resumes=(*RESUMES, *mine))
    with shown() as progress:
        outcome = run(request, voters, out, weighed, guesses, progress)
    written = result.write(outcome, out)
    figures = outcome.figures()
    if as_json:
        print(json.dumps(figures, indent=2, allow_nan=False))
        return
    for line in result.summary(figures):
        print(line)
    print(f"{'report':<22} {written[-1]}")


@app.command
def budget(
    *,
    mechanism: Which,
    sigma: Sigma,
    delta: Delta,
    teachers: int,
    classes: int,
    queries: int | None = None,
    epsilon: float | None = None,
    groups: str | None = None,
    answered: float = 1.0,
    check_sigma: CheckSigma = None,
    threshold: Threshold = None,
    tally: Counts = Counter.CENTRAL,
    confidence: float | None = None,
    tau: float | None = None,
    norm: int = 2,
    winners: Winners = None,
    grid: Grid = None,
    scale: Scale = None,
    at_once: int = _SUMS.at_once,
    dropout: float = _SUMS.dropout,
    corrupted: float = _SUMS.corrupted,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
) -> None:
    """Report what this many queries cost, or how many a budget buys, by the noise alone.

    Where a curator's check is expected to let a share of them pass (--answered), the worst case
    stands beside it: only that can be promised.

    Args:
        teachers: Number of teachers.
        classes: Number of classes, or labels, of a query.
        queries: Report what this many queries cost.
        epsilon: Report how many queries this ε buys.
        groups: Groups of teachers with budgets of their own, ε:members, such as 1:125,2:125.
        answered: Share of the queries that a curator's check lets pass.
        confidence: Student confidence above which its own answer is used.
        tau: Length of a clipped ballot (τ).
        norm: Norm used to clip ballots: 1 or 2.
        at_once: Queries of one secure sum.
        dropout: Share of the teachers that a sum can do without (ρ).
        corrupted: Share of the teachers that may be corrupted (γ).
        as_json: Print JSON, and nothing else.
    """
    from earshot_models.votes.tally import prospects

    if sum(each is not None for each in (queries, epsilon, groups)) != 1:
        raise InvalidInputError("give one of --queries, --epsilon and --groups")
    chosen = Mechanism(
        mechanism,
        classes,
        sigma,
        _check(mechanism, tally, check_sigma, threshold),
        confidence=confidence,
        tau=tau,
        norm=norm,
        most=winners,
        grid=_grid(grid),
        scale=scale,
        bar=_bar(mechanism, tally, check_sigma, threshold),
    )
    sums = Sums(dropout, corrupted, at_once=at_once)
    sharing = prospects.shares(groups, teachers, epsilon)
    made = prospects.prospects(tally, chosen, delta, prospects.weights_of(sharing), sums, answered)
    rows = prospects.table(made, sharing, queries)
    if as_json:
        print(json.dumps(rows, indent=2, allow_nan=False))
        return
    for row in rows:
        own = "" if row["budget"] is None else f" of {row['budget']:g}"
        weight = f", weight {row['weight']}" if len(sharing) > 1 else ""
        worst = (
            "" if row["worst"] == row["epsilon"] else f"; {row['worst']:.4g} if all are answered"
        )
        print(
            f"{row['queries']} queries cost ε = {row['epsilon']:.4g}{own} at δ = {delta:g}, "
            f"{row['unit']}{weight}{worst}"
        )
    if rows[0]["as_printed"] is not None:
        print(
            f"as printed (Muschiol 2021), which does not hold, {rows[0]['queries']} queries: "
            f"ε = {rows[0]['as_printed']:.4g}"
        )


@app.command
def student(
    answers: Path,
    /,
    *,
    samples: Path,
    classes: int,
    out: Path,
    sure: float = 0.95,
    overwrite: Overwrite = False,
) -> None:
    """Learn from answers, and from samples without one; costs nothing more than the answers did.

    scores.npy is what `label --mechanism interactive --scores` takes.

    Args:
        answers: answers.csv of `pate label`, or classes as .npy.
        samples: .npy of samples: those asked about first, then any others.
        classes: Number of classes.
        out: New folder for student.npz and scores.npy.
        sure: Probability from which the student teaches itself a class.
    """
    import numpy as np

    from earshot_models.votes import students as learning

    files = ("student.npz", "scores.npy")
    learned = learning.train(_load(samples), learning.read_answers(answers), classes, sure)
    prepare_folder(out, files, overwrite)
    np.savez(
        out / files[0],
        coefficients=learned.coefficients,
        intercepts=learned.intercepts,
        means=learned.means,
        scales=learned.scales,
    )
    np.save(out / files[1], learned.scores)
    print(f"{'answered':<22} {learned.answered}")
    print(f"{'taught itself':<22} {learned.taught}")
    print(f"{'student':<22} {out / files[0]}")


app.command(pate_tag.tag)
app.command(pate_generate.generate)


def _voters(
    path: Path,
    name: Name,
    teachers: int | None,
    classes: int | None,
    samples: Path | None,
    names: str | None,
) -> Electorate:
    from earshot_models.votes.rules.mechanisms import SINGLE_WINNER
    from earshot_models.votes.tally.votes import electorate

    several = name not in SINGLE_WINNER
    if not path.is_dir():
        if samples is not None or names is not None:
            raise InvalidInputError("--samples and --names: are for the folder of an ensemble")
        return electorate(_load(path), several, teachers, classes, name in THRESHOLDS)
    if several or classes is not None:
        raise InvalidInputError(
            f"{path}: an ensemble answers with one of its own classes; leave --classes out, and "
            f"take a mechanism of one winner: {', '.join(SINGLE_WINNER)}"
        )
    if samples is None:
        raise InvalidInputError(f"{path}: an ensemble needs --samples to vote on")
    from earshot_models.teachers import ensemble

    known = ensemble.classes_of(path) if names is None else tuple(names.split(","))
    with shown() as progress:
        answers = ensemble.votes(path, _load(samples), known, progress)
    return electorate(answers, several, teachers, len(known))


def _load(path: Path) -> npt.NDArray[Any]:
    from earshot_models.votes.tally.votes import load

    return load(path)


def _check(
    mechanism: Name, tally: Counter, deviation: float | None, threshold: float | None
) -> Check | None:
    if deviation is None and _bar(mechanism, tally, deviation, threshold) == threshold:
        return None
    if deviation is None or threshold is None:
        raise InvalidInputError(
            "--threshold and --check-sigma: a check needs both of them, but for votes against "
            "thresholds through secure sums, whose noisy counts are held against --threshold alone"
        )
    return Check(threshold, deviation)


def _bar(
    mechanism: Name, tally: Counter, deviation: float | None, threshold: float | None
) -> float | None:
    """What noisy counts of a secure sum are held against for free."""
    free = mechanism in THRESHOLDS and tally is Counter.FEDERATED and deviation is None
    return threshold if free else None


def _grid(text: str | None) -> tuple[float, ...] | None:
    if text is None:
        return None
    try:
        return tuple(float(each) for each in text.split(","))
    except ValueError:
        raise InvalidInputError(
            f"--grid {text}: must be numbers of votes by commas, such as 10,20,30"
        ) from None
