"""Kinds of generators and their needs: all checks that are made before any sound is read."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from earshot_protocol import checks
from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_protocol.privacy.mechanisms import Unit
from earshot_simulations.generation import budgets, recipes
from earshot_simulations.generation.budgets import NoisyMax


class TrainingKind(enum.StrEnum):
    """Kinds of training a generator, as the command line calls them."""

    AAE = "aae"
    """Adversarial autoencoder without noise: on public sound, or not private."""
    AAE_PRIVATE = "aae-private"
    """Adversarial autoencoder by DP-SGD."""
    PATE_GAN = "pate-gan"
    """Generator that learns from noisy votes of teachers."""
    DP_GAN = "dp-gan"
    """Generator that learns from a critic trained by DP-SGD."""


@dataclass(frozen=True)
class TrainingSize:
    """The size of a training; `DEFAULTS` has those of the recipes.

    Attributes:
        steps: Number of steps.
        batch: Clips of a step, on average; for PATE-GAN, samples that teachers vote on in a step.
    """

    steps: int
    batch: int


RECIPES = {
    TrainingKind.AAE: recipes.OPEN,
    TrainingKind.AAE_PRIVATE: recipes.NOISY,
    TrainingKind.DP_GAN: recipes.JUDGED,
    TrainingKind.PATE_GAN: recipes.VOTED,
}
DEFAULTS = {kind: TrainingSize(recipe.steps, recipe.batch) for kind, recipe in RECIPES.items()}

_DP_SGD = (TrainingKind.AAE_PRIVATE, TrainingKind.DP_GAN)


@dataclass(frozen=True)
class TrainingRequest:
    """The parameters of a requested training.

    Attributes:
        kind: Kind of the training.
        size: Size of the training.
        epsilon: Budget ε; None without noise.
        delta: Value of δ; None without noise.
        teachers: Number of teachers (M) of PATE-GAN.
        mechanism: Mechanism that answers votes in PATE-GAN.

    Raises:
        InvalidParametersError: A number is out of range, missing, or belongs to another kind.
    """

    kind: TrainingKind
    size: TrainingSize
    epsilon: float | None = None
    delta: float | None = None
    teachers: int | None = None
    mechanism: NoisyMax | None = None

    def __post_init__(self) -> None:
        checks.whole("steps", self.size.steps)
        checks.whole("batch", self.size.batch)
        given = [each is not None for each in (self.epsilon, self.delta)]
        if self.kind is TrainingKind.AAE and any(given):
            raise InvalidParametersError(
                f"{self.kind} adds no noise, so a budget has no effect: leave --epsilon and "
                f"--delta out, or use {TrainingKind.AAE_PRIVATE}"
            )
        if self.kind is not TrainingKind.AAE and not all(given):
            raise InvalidParametersError(f"{self.kind} needs a budget: give --epsilon and --delta")
        votes = [each is not None for each in (self.teachers, self.mechanism)]
        if self.kind is TrainingKind.PATE_GAN:
            if not all(votes):
                raise InvalidParametersError(f"{self.kind} needs --teachers and --mechanism")
        elif any(votes):
            raise InvalidParametersError(
                f"--teachers and --mechanism are for {TrainingKind.PATE_GAN}, not for {self.kind}"
            )

    @property
    def queries(self) -> int:
        """Samples that teachers vote on in the whole training."""
        return self.size.steps * self.size.batch

    @property
    def unit(self) -> str:
        """Unit by which neighbours differ, in words that follow "for each"."""
        return UNITS[self.kind]


UNITS = {
    TrainingKind.AAE: "",
    TrainingKind.AAE_PRIVATE: "clip that is there or not",
    TrainingKind.DP_GAN: "clip that is there or not",
    TrainingKind.PATE_GAN: "clip that is another",
}


@dataclass(frozen=True)
class Noise:
    """The noise that keeps a budget.

    Attributes:
        level: Noise level: for DP-SGD the deviation over the norm of a clip's gradient, for votes
            the deviation or scale in votes.
        most: Clips of a batch, or teachers, to compare the noise with.
        words: Sentence that states both.
    """

    level: float
    most: int
    words: str


def noise(request: TrainingRequest, clips: int) -> Noise | None:
    """Return the noise that a training needs; None for one without.

    Args:
        request: Training that is requested.
        clips: Number of clips, which is public.

    Raises:
        InvalidInputError: There are more teachers, or clips in a batch, than clips.
        InvalidParametersError: There is no valid budget; see `budgets`.
        UselessBudgetError: The noise drowns everything; the message says what would help.
    """
    if request.epsilon is None or request.delta is None:
        return None
    budgets.check(request.epsilon, request.delta, clips)
    if request.kind in _DP_SGD:
        return _of_gradients(request, clips, request.epsilon, request.delta)
    return _of_votes(request, clips, request.epsilon, request.delta)


def _of_gradients(request: TrainingRequest, clips: int, epsilon: float, delta: float) -> Noise:
    size = request.size
    if size.batch > clips:
        raise InvalidInputError(
            f"--batch {size.batch}: must be at most {clips}, the number of clips"
        )
    level = budgets.dp_sgd(epsilon, delta, clips, size)
    budgets.check_useful(
        level,
        size.batch,
        f"a batch of {size.batch} clips",
        "use fewer --steps, more clips or a larger --epsilon",
    )
    return Noise(
        level,
        size.batch,
        f"Gaussian noise of {level:.4g} on every number of a sum of gradients, each clipped to "
        f"length 1: a batch of {size.batch} clips moves the whole sum by {size.batch} at most.",
    )


def _of_votes(request: TrainingRequest, clips: int, epsilon: float, delta: float) -> Noise:
    teachers = checks.whole("teachers", request.teachers or 0, 2)
    mechanism = request.mechanism or NoisyMax.GNMAX
    rule = budgets.MECHANISMS[mechanism]
    if teachers > clips:
        raise InvalidInputError(
            f"--teachers {teachers}: there are {clips} clips, and each teacher needs one of its own"
        )
    unit = Unit.REPLACED_PHONE
    level = budgets.pate_gan(epsilon, delta, request.queries, mechanism, unit)
    remedy = "use fewer --steps, a smaller --batch, more --teachers or a larger --epsilon"
    most = rule.most_answers(epsilon, delta, teachers, unit)
    if most is not None:
        remedy = f"it has room for {most} of {request.queries} queries; {remedy}"
    budgets.check_useful(level, teachers, f"{teachers} teachers", remedy)
    return Noise(
        level,
        teachers,
        f"{rule.noise_law} {level:.4g} on every count of votes: {teachers} teachers, "
        f"{request.queries} queries.",
    )


def share(request: TrainingRequest, noise: Noise) -> float:
    """Return the share of a step that sensitive clips have beside public ones."""
    if request.kind is TrainingKind.PATE_GAN:
        return recipes.voted_share(noise.level / noise.most)
    return recipes.share(noise.level)
