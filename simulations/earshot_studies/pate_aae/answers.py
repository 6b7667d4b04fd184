"""What teachers answer about generated clips, under the noise of a budget.

Three ways to add noise: as Yang et al. (Interspeech 2021) print it, and as Laplace and as Gaussian
noise that keep the budget. What protects a clip is that it is with one teacher, whose whole vote it
may move: to another class, wherever the clip is replaced or left out.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from earshot_models.teachers.ensemble import vote_counts
from earshot_models.teachers.partitions import partitions
from earshot_models.teachers.teacher import Teacher, trained
from earshot_protocol import checks
from earshot_protocol.voting.winners import GNMax, LNMax
from earshot_server.accounting.votes.claims import printed_scale
from earshot_simulations.generation import budgets
from earshot_simulations.pate.mechanisms import Name
from earshot_studies.pate_aae.digits import TEACHER, MovedRidge
from earshot_studies.pate_aae.split import Clips

Told = Callable[[int, int], None]
"""Called with the teachers that are trained and all of them."""


class Noise(enum.StrEnum):
    """Of the answers."""

    PRINTED = "LNMax as printed"
    """Laplace noise of scale K/2ε, whatever that protects."""
    LAPLACE = "LNMax"
    """Laplace noise that keeps the budget."""
    GAUSSIAN = "GNMax"
    """Gaussian noise that keeps the budget."""
    NONE = "no noise"
    """Not private: what the votes would give."""


@dataclass(frozen=True)
class Ensemble:
    """Teachers on disjoint parts of private clips.

    Attributes:
        teachers: models, none of which may be published.
        classes: names.
    """

    teachers: tuple[Teacher, ...]
    classes: tuple[str, ...]

    def answers(self, pictures: NDArray[np.float32]) -> NDArray[np.int64]:
        """What each teacher says of each picture, int64 (teachers, pictures)."""
        return np.stack([teacher.predict(pictures) for teacher in self.teachers])

    def votes(self, pictures: NDArray[np.float32]) -> NDArray[np.float64]:
        """How many teachers are for each class, (pictures, classes)."""
        return vote_counts(self.answers(pictures), len(self.classes))


def ensemble(
    private: Clips,
    classes: tuple[str, ...],
    teachers: int,
    generator: np.random.Generator,
    progress: Told = lambda done, total: None,
) -> Ensemble:
    """Teachers of raw pictures: an encoder that all share would let one clip move all votes.

    Args:
        private: clips, each on its own.
        classes: names.
        teachers: how many.
        generator: of who gets which clips; it looks at no clip.
        progress: told after each teacher.

    Raises:
        InvalidParametersError: more teachers than clips, or none.
    """
    parts = partitions(np.arange(len(private)), teachers, generator)
    found = []
    for done, part in enumerate(parts, start=1):
        learner = MovedRidge(TEACHER)
        found.append(trained(learner, private.pictures[part], private.labels[part], classes))
        progress(done, teachers)
    return Ensemble(tuple(found), classes)


@functools.lru_cache(maxsize=256)
def scale(noise: Noise, epsilon: float, delta: float, queries: int) -> float:
    """Of the noise on every count, in votes; 0 for none.

    Args:
        noise: of which law.
        epsilon: ε of all answers; what `PRINTED` is named after, and not what it gives.
        delta: δ; the printed scale knows none.
        queries: K, how many clips are answered.

    Raises:
        InvalidParametersError: a number is out of range, such as no query at all.
    """
    checks.epsilon("epsilon", epsilon)
    checks.whole("queries", queries)
    match noise:
        case Noise.PRINTED:
            return printed_scale(epsilon, queries)
        case Noise.LAPLACE:
            return budgets.labels(epsilon, delta, queries, Name.LNMAX)
        case Noise.GAUSSIAN:
            return budgets.labels(epsilon, delta, queries, Name.GNMAX)
        case Noise.NONE:
            return 0.0


def answered(
    noise: Noise,
    votes: NDArray[np.float64],
    size: float,
    generator: np.random.Generator,
) -> NDArray[np.int64]:
    """One class for every query, int64 (queries,).

    Args:
        noise: of which law.
        votes: (queries, classes).
        size: of the noise, see `scale`.
        generator: of the noise; a simulation's, for what is published needs secret randomness.

    Raises:
        InvalidInputError: votes that are none.
        InvalidParametersError: noise of no size, where there must be some.
    """
    match noise:
        case Noise.NONE:
            # Equal counts are decided by lot: the first class would win more often than others.
            most: NDArray[np.int64] = (votes + 0.5 * generator.random(votes.shape)).argmax(axis=1)
            return most
        case Noise.GAUSSIAN:
            return GNMax(size).winners(votes, generator.bytes)
        case _:
            return LNMax(1 / checks.positive("size", size)).winners(votes, generator.bytes)
