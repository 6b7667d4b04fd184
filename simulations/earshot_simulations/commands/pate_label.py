"""`earshot pate label RULE`: label queries until a budget is spent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from earshot_models.commands.output import prepare_folder
from earshot_models.commands.progress import shown
from earshot_models.votes.costs.releases import VotesCost
from earshot_models.votes.rules.rule import TeacherUnit, VotingRule
from earshot_protocol import distribution
from earshot_protocol.errors import InvalidInputError
from earshot_simulations.commands.pate_rules import Counting, Extra, add_rules

if TYPE_CHECKING:
    from earshot_models.votes.electorate import Electorate

app = App(
    name="label",
    help="Ask about queries until the budget is spent; a run that was cut short goes on.",
)

_VOTES = Annotated[
    Path,
    Parameter(
        help="A .npy of counts (queries × classes), of classes with --classes (teachers × "
        "queries), or of labels (teachers × queries × labels; against thresholds also "
        "probabilities); or the folder of an ensemble, which votes on --samples."
    ),
]
_SCORES = Annotated[Path, Parameter(help="Student's probabilities as .npy (queries × classes).")]
_COST = Annotated[
    VotesCost | None,
    Parameter(help="Publish, once and with noise, what answers cost by the votes that were cast."),
]


@dataclass(frozen=True, kw_only=True)
class Labelling(Counting):
    """Options of a labelling, whatever its rule.

    Attributes:
        epsilon: Budget ε for all queries together.
        delta: Value of δ for the budget, below 1 over the records.
        out: New folder, or that of an interrupted run.
        unit: Difference between neighbours for the budget: a teacher left out, or replaced.
        teachers: Number of teachers, to check the votes against.
        classes: Number of classes; if given, the file holds teachers' classes, not counts.
        samples: File .npy of samples on which a folder's ensemble votes.
        names: Classes that the ensemble must know, in order, separated by commas.
        records: Records that all teachers learned from together; by default one each.
        weights: File .npy of a whole number for each teacher: personal budgets.
        most: Most queries to ask about.
        overwrite: Replace the files of this command where --out has them.
    """

    epsilon: float
    delta: float
    out: Path
    unit: TeacherUnit = TeacherUnit.REPLACED
    teachers: int | None = None
    classes: int | None = None
    samples: Path | None = None
    names: str | None = None
    records: int | None = None
    weights: Path | None = None
    most: int | None = None
    overwrite: bool = False


def _label(
    votes: Path,
    *,
    rule: VotingRule,
    shared: Labelling,
    scores: Path | None = None,
    votes_cost: VotesCost | None = None,
) -> None:
    """Label by a rule."""
    from earshot_models.votes.electorate import load
    from earshot_models.votes.tally import journal, result
    from earshot_models.votes.tally.budgets import QueryBudget
    from earshot_models.votes.tally.labelling import RESUMES, LabellingRequest, run

    voters, out = _voters(votes, rule, shared), shared.out
    records = voters.teachers if shared.records is None else shared.records
    budget = QueryBudget(shared.epsilon, shared.delta, shared.unit.unit, records)
    request = LabellingRequest(rule, budget, shared.tally, shared.sums, shared.most, votes_cost)
    weighed, guesses = (None if path is None else load(path) for path in (shared.weights, scores))
    # With a journal, the result files belong to this labelling.
    mine = result.FILES if (out / journal.FILE).exists() else ()
    prepare_folder(out, result.FILES, shared.overwrite, resumes=(*RESUMES, *mine))
    with shown() as progress:
        outcome = run(request, voters, out, weighed, guesses, progress)
    written = result.write(outcome, out)
    figures = outcome.figures()
    if shared.as_json:
        print(json.dumps(figures, indent=2, allow_nan=False))
        return
    for line in result.summary(figures):
        print(line)
    print(f"{'report':<22} {written[-1]}")


def _voters(path: Path, rule: VotingRule, shared: Labelling) -> Electorate:
    from earshot_models.votes.electorate import electorate, load

    if not path.is_dir():
        if shared.samples is not None or shared.names is not None:
            raise InvalidInputError("--samples and --names: are for the folder of an ensemble")
        votes = load(path)
        return electorate(votes, rule.several, shared.teachers, shared.classes, rule.probabilities)
    if rule.several or shared.classes is not None:
        raise InvalidInputError(
            f"{path}: an ensemble answers with one of its own classes; leave --classes out, and "
            "take a rule of one winner"
        )
    if shared.samples is None:
        raise InvalidInputError(f"{path}: an ensemble needs --samples to vote on")
    distribution.require(f"{path}: the vote of an ensemble", ("simulations", "models"))
    from earshot_models.teachers import ensemble

    names = shared.names
    known = ensemble.classes_of(path) if names is None else tuple(names.split(","))
    with shown() as progress:
        answers = ensemble.votes(path, load(shared.samples), known, progress)
    return electorate(answers, rule.several, shared.teachers, len(known))


def _extras(rule: type[VotingRule]) -> Mapping[str, Extra]:
    found = {"scores": Extra(_SCORES, needed=True)} if rule.takes_scores else {}
    return found | ({"votes_cost": Extra(_COST)} if rule.publishes else {})


add_rules(app, _label, Labelling, _extras, {"votes": _VOTES})
