"""Teachers' answers about generated clips, under the noise of a budget.

Noise is that of Yang et al. (Interspeech 2021) as printed, or Laplace or Gaussian noise that keeps
the budget. Each clip belongs to one teacher, whose vote may move to another class if the clip is
replaced or left out.
"""

from __future__ import annotations

import enum
import functools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from earshot_models.teachers.ensemble import vote_counts
from earshot_models.teachers.partitions import partitions
from earshot_models.teachers.teacher import Teacher, trained
from earshot_models.votes.costs.claims import printed_scale
from earshot_models.votes.rules.gnmax import GNMax
from earshot_models.votes.rules.lnmax import LNMax
from earshot_protocol import checks
from earshot_protocol.progress import Progress, silent
from earshot_studies.pate_aae import budgets
from earshot_studies.pate_aae.digits import TEACHER, MovedRidge
from earshot_studies.pate_aae.split import LabelledClips


class AnswerNoise(enum.StrEnum):
    """Laws of the noise on answers."""

    PRINTED = "LNMax as printed"
    """Laplace noise of scale K/2ε, which does not guarantee the budget."""
    LAPLACE = "LNMax"
    """Laplace noise that keeps the budget."""
    GAUSSIAN = "GNMax"
    """Gaussian noise that keeps the budget."""
    NONE = "no noise"
    """No noise and no privacy: the answers of the votes alone."""


@dataclass(frozen=True)
class ClipTeachers:
    """Teachers on disjoint parts of private clips.

    Attributes:
        teachers: Models of the teachers, none of which may be published.
        classes: Names of the classes.
    """

    teachers: tuple[Teacher, ...]
    classes: tuple[str, ...]

    def answers(self, pictures: NDArray[np.float32]) -> NDArray[np.int64]:
        """Return each teacher's class for each picture, int64 (teachers, pictures)."""
        return np.stack([teacher.predict(pictures) for teacher in self.teachers])

    def votes(self, pictures: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return the number of teachers for each class, (pictures, classes)."""
        return vote_counts(self.answers(pictures), len(self.classes))


def ensemble(
    private: LabelledClips,
    classes: tuple[str, ...],
    teachers: int,
    generator: np.random.Generator,
    progress: Progress = silent,
) -> ClipTeachers:
    """Train teachers on raw pictures: with a shared encoder, one clip could move all votes.

    Args:
        private: Private clips, each on its own.
        classes: Names of the classes.
        teachers: Number of teachers.
        generator: Generator that assigns clips to teachers, independently of their content.
        progress: Callback after each teacher.

    Raises:
        InvalidParametersError: There are more teachers than clips, or none.
    """
    parts = partitions(np.arange(len(private)), teachers, generator)
    found = []
    for done, part in enumerate(parts, start=1):
        learner = MovedRidge(TEACHER)
        found.append(trained(learner, private.pictures[part], private.labels[part], classes))
        progress("teachers", done, teachers)
    return ClipTeachers(tuple(found), classes)


@functools.lru_cache(maxsize=256)
def scale(noise: AnswerNoise, epsilon: float, delta: float, queries: int) -> float:
    """Return the scale of the noise on every count, in votes; 0 for none.

    Args:
        noise: Law of the noise.
        epsilon: Budget ε of all answers; `PRINTED` does not guarantee it.
        delta: Budget δ of all answers; the printed scale ignores it.
        queries: Number of clips that are answered (K).

    Raises:
        InvalidParametersError: A number is out of range, or there are no queries.
    """
    checks.epsilon("epsilon", epsilon)
    checks.whole("queries", queries)
    match noise:
        case AnswerNoise.PRINTED:
            return printed_scale(epsilon, queries)
        case AnswerNoise.LAPLACE:
            return budgets.labels(epsilon, delta, queries, budgets.NoisyMax.LNMAX)
        case AnswerNoise.GAUSSIAN:
            return budgets.labels(epsilon, delta, queries, budgets.NoisyMax.GNMAX)
        case AnswerNoise.NONE:
            return 0.0


def answered(
    noise: AnswerNoise,
    votes: NDArray[np.float64],
    size: float,
    generator: np.random.Generator,
) -> NDArray[np.int64]:
    """Return one class for every query, int64 (queries,).

    Args:
        noise: Law of the noise.
        votes: Votes, (queries, classes).
        size: Scale of the noise; see `scale`.
        generator: Generator of the noise; only for simulations, as published answers need secret
            randomness.

    Raises:
        InvalidInputError: The votes are invalid.
        InvalidParametersError: The size is not positive, but the law needs one.
    """
    match noise:
        case AnswerNoise.NONE:
            # Ties are broken at random: otherwise the first class would win more often.
            most: NDArray[np.int64] = (votes + 0.5 * generator.random(votes.shape)).argmax(axis=1)
            return most
        case AnswerNoise.GAUSSIAN:
            return GNMax(size).winners(votes, generator.bytes)
        case _:
            return LNMax(1 / checks.positive("size", size)).winners(votes, generator.bytes)
