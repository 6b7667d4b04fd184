"""Which generators there are, and what each needs: all that is checked before any sound is read."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass

from earshot_protocol import checks
from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_protocol.privacy.mechanisms import Unit
from earshot_simulations.generation import budgets, recipes
from earshot_simulations.pate.mechanisms import Name


class Kind(enum.StrEnum):
    """What the command line calls a way to train a generator."""

    AAE = "aae"
    """An adversarial autoencoder without noise: on public sound, or not private."""
    AAE_PRIVATE = "aae-private"
    """The same by DP-SGD."""
    PATE_GAN = "pate-gan"
    """A generator that learns from noisy votes of teachers."""
    DP_GAN = "dp-gan"
    """A generator that learns from a critic trained by DP-SGD."""


@dataclass(frozen=True)
class Size:
    """Of a training; `DEFAULTS` has what a recipe has.

    Attributes:
        steps: how many.
        batch: clips of a step, on average; of PATE-GAN samples that teachers vote on in a step.
    """

    steps: int
    batch: int


RECIPES = {
    Kind.AAE: recipes.OPEN,
    Kind.AAE_PRIVATE: recipes.NOISY,
    Kind.DP_GAN: recipes.JUDGED,
    Kind.PATE_GAN: recipes.VOTED,
}
DEFAULTS = {kind: Size(recipe.steps, recipe.batch) for kind, recipe in RECIPES.items()}

_DP_SGD = (Kind.AAE_PRIVATE, Kind.DP_GAN)


@dataclass(frozen=True)
class Request:
    """What is to be trained.

    Attributes:
        kind: which.
        size: of the training.
        epsilon: ε; None where there is no noise.
        delta: δ; None where there is no noise.
        teachers: M, of PATE-GAN.
        mechanism: how votes are answered, of PATE-GAN.

    Raises:
        InvalidParametersError: a number out of range, missing, or of another kind.
    """

    kind: Kind
    size: Size
    epsilon: float | None = None
    delta: float | None = None
    teachers: int | None = None
    mechanism: Name | None = None

    def __post_init__(self) -> None:
        checks.whole("steps", self.size.steps)
        checks.whole("batch", self.size.batch)
        given = [each is not None for each in (self.epsilon, self.delta)]
        if self.kind is Kind.AAE and any(given):
            raise InvalidParametersError(
                f"{self.kind} adds no noise, so a budget buys nothing: leave --epsilon and --delta "
                f"out, or take {Kind.AAE_PRIVATE}"
            )
        if self.kind is not Kind.AAE and not all(given):
            raise InvalidParametersError(f"{self.kind} needs a budget: give --epsilon and --delta")
        votes = [each is not None for each in (self.teachers, self.mechanism)]
        if self.kind is Kind.PATE_GAN:
            if not all(votes):
                raise InvalidParametersError(f"{self.kind} needs --teachers and --mechanism")
        elif any(votes):
            raise InvalidParametersError(
                f"--teachers and --mechanism are of {Kind.PATE_GAN}, and not of {self.kind}"
            )

    @property
    def queries(self) -> int:
        """Samples that teachers vote on in the whole training."""
        return self.size.steps * self.size.batch

    @property
    def unit(self) -> str:
        """What neighbours differ in, in words that follow "for each"."""
        return UNITS[self.kind]


UNITS = {
    Kind.AAE: "",
    Kind.AAE_PRIVATE: "clip that is there or not",
    Kind.DP_GAN: "clip that is there or not",
    Kind.PATE_GAN: "clip that is another",
}


@dataclass(frozen=True)
class Noise:
    """What keeps a budget.

    Attributes:
        level: of DP-SGD the deviation over the norm of a clip's gradient, of votes the deviation or
            scale in votes.
        most: clips of a batch, or teachers: what the noise is to be compared with.
        words: both in a sentence.
    """

    level: float
    most: int
    words: str


def noise(request: Request, clips: int) -> Noise | None:
    """The noise that a training needs, None for one without.

    Args:
        request: what is to be trained.
        clips: how many there are, which is public.

    Raises:
        InvalidInputError: more teachers, or clips in a batch, than clips.
        InvalidParametersError: no budget, see `budgets`.
        UselessBudgetError: noise that drowns all there is to learn, with what would do.
    """
    if request.epsilon is None or request.delta is None:
        return None
    budgets.check(request.epsilon, request.delta, clips)
    if request.kind in _DP_SGD:
        return _of_gradients(request, clips, request.epsilon, request.delta)
    return _of_votes(request, clips, request.epsilon, request.delta)


def _of_gradients(request: Request, clips: int, epsilon: float, delta: float) -> Noise:
    size = request.size
    if size.batch > clips:
        raise InvalidInputError(
            f"--batch {size.batch}: there are {clips} clips; take a batch of at most so many"
        )
    level = budgets.dp_sgd(epsilon, delta, clips, size)
    budgets.check_useful(
        level,
        size.batch,
        f"a batch of {size.batch} clips",
        "take fewer --steps, more clips or a larger --epsilon",
    )
    return Noise(
        level,
        size.batch,
        f"Gaussian noise of {level:.4g} on every number of a sum of gradients, each clipped to "
        f"length 1: a batch of {size.batch} clips moves the whole sum by {size.batch} at most.",
    )


def _of_votes(request: Request, clips: int, epsilon: float, delta: float) -> Noise:
    teachers = checks.whole("teachers", request.teachers or 0, 2)
    mechanism = request.mechanism or Name.GNMAX
    if teachers > clips:
        raise InvalidInputError(
            f"--teachers {teachers}: there are {clips} clips, and each teacher needs one of its own"
        )
    unit = Unit.REPLACED_PHONE
    level = budgets.pate_gan(epsilon, delta, request.queries, mechanism, unit)
    remedy = "take fewer --steps, a smaller --batch, more --teachers or a larger --epsilon"
    if mechanism == Name.GNMAX:  # whose noise grows with the root of the queries
        one = budgets.pate_gan(epsilon, delta, 1, mechanism, unit)
        most = math.floor((teachers / one) ** 2)
        remedy = f"it has room for {most} of {request.queries} queries; {remedy}"
    budgets.check_useful(level, teachers, f"{teachers} teachers", remedy)
    law = "Laplace noise of scale" if mechanism == Name.LNMAX else "Gaussian noise of deviation"
    return Noise(
        level,
        teachers,
        f"{law} {level:.4g} on every count of votes: {teachers} teachers, {request.queries} "
        "queries.",
    )


def share(request: Request, noise: Noise) -> float:
    """Of a step, that sensitive clips have beside public ones; of what is public alone."""
    if request.kind is Kind.PATE_GAN:
        return recipes.voted_share(noise.level / noise.most)
    return recipes.share(noise.level)
