"""Students of votes against thresholds: who answered what, what it cost, and what was learned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from earshot_models.tagging.metrics import scores
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.voting.teacher_ballots import NONE
from earshot_server.accounting.votes import muschiol
from earshot_server.accounting.votes.costs import Method, epsilon
from earshot_server.accounting.votes.thresholds import threshold_divergences
from earshot_studies.kit.outcome import Row
from earshot_studies.muschiol.ensemble_tables import best_threshold, named
from earshot_studies.muschiol.printed import ADAPTIVE, Setting, rule
from earshot_studies.muschiol.settings import GRID, ORDERS, Ensemble, voting
from earshot_studies.muschiol.taggers.ensembles import Scored, prepared
from earshot_studies.muschiol.taggers.school import School, Tagging, Teaching
from earshot_studies.muschiol.taggers.study import Material, Study, material

TEACHERS = 50
NOISE, CHECK_NOISE = 0.3, 0.6
"""σ_e and σ_c of Table 5.4."""
SAMPLES = (800, 2000)
"""Answers that students learn from; as far apart as Muschiol's 2,000 and 5,000."""
PRINTED, SOUND, TRUE = "as printed", "soundly", "true labels"
CHECKS = ("", "0.4", "0.6")


class Lesson(NamedTuple):
    """What a student learns from.

    Attributes:
        rule: `PRINTED`, `SOUND`, or `TRUE` for labels that are right.
        setting: th_e and th_c.
        samples: answers.
    """

    rule: str
    setting: Setting
    samples: int

    @property
    def name(self) -> str:
        """In words."""
        return ", ".join([self.rule, " + ".join(filter(None, self.setting)), str(self.samples)])


def lessons(full: bool) -> list[Lesson]:
    """All rows of Table 5.4, rules that hold beside them, and what true labels would teach.

    Args:
        full: with every check and number of samples for rules that hold.
    """
    printed = [
        Lesson(PRINTED, (threshold, check), samples)
        for samples in SAMPLES
        for threshold in ("0.2", "0.4", ADAPTIVE)
        for check in CHECKS
    ]
    sound = [
        Lesson(SOUND, (threshold, check), samples)
        for samples in (SAMPLES if full else SAMPLES[1:])
        for threshold in ("0.2", "0.4", ADAPTIVE, GRID)
        for check in (CHECKS if full else ("", "0.6"))
    ]
    return [*printed, *sound, *(Lesson(TRUE, ("", ""), samples) for samples in SAMPLES)]


@dataclass(frozen=True)
class Answers:
    """What an ensemble answered.

    Attributes:
        asked: queries from the first on.
        numbers: of those that were answered, int64 (answers,).
        named: of those, bool (answers, labels).
        costs: ε by the names of columns; of what was asked and answered, so not to be promised.
    """

    asked: int
    numbers: NDArray[np.int64]
    named: NDArray[np.bool_]
    costs: Row


def answers(lesson: Lesson, ensemble: Ensemble, seed: int) -> Answers:
    """Ask until so many are answered, or there are no more queries.

    Args:
        lesson: how, and how many.
        ensemble: what its teachers say of the queries.
        seed: of the noise.

    Raises:
        InvalidParametersError: nothing was answered.
    """
    if lesson.rule == TRUE:
        numbers = np.arange(min(lesson.samples, len(ensemble.truth)))
        return Answers(len(numbers), numbers, ensemble.truth[numbers] == 1, {})
    ask = _as_printed if lesson.rule == PRINTED else _soundly
    passed, said = ask(lesson.setting, ensemble, seed)
    numbers = np.flatnonzero(passed)[: lesson.samples]
    if not len(numbers):
        raise InvalidParametersError(
            f"th_c={lesson.setting[1]}: not one of {len(passed)} queries was answered, so that "
            "there is nothing to learn from"
        )
    # Without a check nobody asks more than is answered; with one, until enough are.
    enough = len(numbers) == lesson.samples
    asked = int(numbers[-1]) + 1 if enough else len(passed)
    return Answers(asked, numbers, said[numbers], _costs(lesson, ensemble, asked, passed[:asked]))


Asked = tuple[NDArray[np.bool_], NDArray[np.bool_]]


def _as_printed(setting: Setting, ensemble: Ensemble, seed: int) -> Asked:
    """Every query: whether it passes, and what is said of it."""
    own = rule(setting, NOISE, CHECK_NOISE)._replace(teachers=ensemble.teachers)
    generator = np.random.default_rng([seed, 0])
    passed = np.ones(len(ensemble.votes), dtype=np.bool_)
    if own.check is not None:
        checked = own.check_sigma * generator.standard_normal(len(passed))
        passed = ensemble.votes.max(axis=1) + checked >= own.check * own.teachers
    noisy = ensemble.votes + own.sigma * generator.standard_normal(ensemble.votes.shape)
    return passed, noisy > own.thresholds(ensemble.votes)[:, None]


def _soundly(setting: Setting, ensemble: Ensemble, seed: int) -> Asked:
    own = voting(setting, NOISE, CHECK_NOISE, ensemble.teachers)
    found = own.winners(ensemble.cut, np.random.default_rng([seed, 1]).bytes)
    return found[:, 0] != NONE, found == 1


def _costs(lesson: Lesson, ensemble: Ensemble, asked: int, passed: NDArray[np.bool_]) -> Row:
    """ε at Muschiol's δ: as claimed, or by the noise of rules that hold."""
    if lesson.rule == PRINTED:
        own = rule(lesson.setting, NOISE, CHECK_NOISE)._replace(teachers=ensemble.teachers)
        claimed = muschiol.claim(own, ensemble.votes[:asked], passed)
        found: Row = {"claimed": claimed.dependent, "claimed_independent": claimed.independent}
        return found | {"q": claimed.q}
    return _of_noise(lesson, ensemble, asked, int(passed.sum()))


def promised(lesson: Lesson, ensemble: Ensemble) -> Row:
    """ε of a lesson of rules that hold, whatever the votes: of all queries, and its answers."""
    return _of_noise(lesson, ensemble, len(ensemble.cut), lesson.samples)


def _of_noise(lesson: Lesson, ensemble: Ensemble, asked: int, answered: int) -> Row:
    own_voting = voting(lesson.setting, NOISE, CHECK_NOISE, ensemble.teachers)
    found: Row = {}
    for column, unit in (("left_out", Unit.PHONE), ("replaced", Unit.REPLACED_PHONE)):
        each = threshold_divergences(own_voting, ensemble.cut[:1], ORDERS, Method.INDEPENDENT, unit)
        total = asked * each.asked[0] + answered * each.answered[0]
        found[column] = epsilon(total, ORDERS, muschiol.DELTA)[0]
    return found


def taught(
    study: Study, teaching: Teaching, lesson: Lesson, seed: int
) -> tuple[Answers, Tagging, Material]:
    """A student of a lesson; the same each time.

    Raises:
        InvalidParametersError: nothing was answered.
    """
    given = answers(lesson, ensemble_of(study, teaching, seed), seed)
    school = _school(study, teaching, seed)
    queries = school.material.queries.rows(given.numbers)
    student = school.taught(queries.power(), given.named.astype(np.int8), seed)
    return given, student, school.material


def measured(study: Study, teaching: Teaching, lesson: Lesson, seed: int) -> Row:
    """What a student learned, on test mixtures.

    Its threshold is the best of Muschiol's by macro F1 on validation mixtures.
    """
    given, student, mixed = taught(study, teaching, lesson, seed)
    likely = {
        side: Scored(student.probabilities(part.power())[None], part.truth)
        for side, part in (("validation", mixed.validation), ("test", mixed.test))
    }
    threshold = best_threshold(likely["validation"])
    test, validation = likely["test"], likely["validation"]
    found = scores(test.truth, named(test, threshold), test.mean())
    on_validation = scores(validation.truth, named(validation, threshold), validation.mean())
    right = scores(mixed.queries.truth[given.numbers], given.named)
    return {
        "seed": seed,
        "rule": lesson.rule,
        "th_e": lesson.setting[0],
        "th_c": lesson.setting[1],
        "samples": lesson.samples,
        "answered": len(given.numbers),
        "asked": given.asked,
        **given.costs,
        "mAP": found.mean_average_precision or 0.0,
        "macro_F1": found.macro_f1,
        "micro_F1": found.micro_f1,
        "never_named": found.never_named,
        "validation_mAP": on_validation.mean_average_precision or 0.0,
        "answers_F1": right.macro_f1,
        "answers_never_named": right.never_named,
    }


def beside(study: Study, teaching: Teaching, seed: int) -> Iterator[Row]:
    """What the ensemble and the baseline themselves reach on the same test mixtures."""
    for name, teachers in (("ensemble", TEACHERS), ("baseline", 1)):
        found = prepared(study, teachers, seed, teaching)
        threshold = best_threshold(found.validation)
        test = scores(found.test.truth, named(found.test, threshold), found.test.mean())
        yield {
            "seed": seed,
            "rule": name,
            "th_e": "",
            "th_c": "",
            "samples": 0,
            "mAP": test.mean_average_precision or 0.0,
            "macro_F1": test.macro_f1,
            "micro_F1": test.micro_f1,
            "never_named": test.never_named,
        }


@lru_cache(maxsize=1)
def ensemble_of(study: Study, teaching: Teaching, seed: int) -> Ensemble:
    """One process teaches many students of one seed."""
    asked = prepared(study, TEACHERS, seed, teaching).queries
    return Ensemble.of(asked.probabilities, asked.truth)


@lru_cache(maxsize=1)
def _school(study: Study, teaching: Teaching, seed: int) -> School:
    return School(material(study, seed), teaching)
