"""Training of taggers, both teachers and students."""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from earshot_protocol import checks
from earshot_protocol.errors import InvalidParametersError
from earshot_studies.muschiol.taggers.linear import FeatureScale, LinearTagger
from earshot_studies.muschiol.taggers.study import Material

if TYPE_CHECKING:
    from earshot_studies.muschiol.tagging.training import Tagger, Workshop


_LOOKS, _PATIENCE = 60, 2
"""Steps between checks of validation, and checks without a gain that end training."""


class LearnerKind(StrEnum):
    """Kinds of teachers and students.

    `LINEAR` is a logistic regression per label on statistics of bands, `SMALL` the small network of
    `earshot_studies.muschiol.tagging`.
    """

    LINEAR = "linear"
    SMALL = "small"


@dataclass(frozen=True)
class Teaching:
    """The training of taggers; a linear one uses only the kind.

    Attributes:
        kind: Kind of the taggers.
        steps: Maximum number of batches.
        mixup: Whether clips are mixed with each other.
        balanced: Whether labels take turns in batches.
        weighted: Whether the loss has the weights of Definition 13.
        adaptive: Whether examples of badly learned labels count for more.
    """

    kind: LearnerKind = LearnerKind.SMALL
    steps: int = 900
    mixup: bool = True
    balanced: bool = True
    weighted: bool = False
    adaptive: bool = False

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "kind", LearnerKind(self.kind))
        except ValueError:
            raise InvalidParametersError(
                f"kind={self.kind!r}: must be one of {', '.join(LearnerKind)}"
            ) from None
        checks.whole("steps", self.steps)


NETWORKS = Teaching()


class School:
    """A trainer of taggers that also computes their outputs for the mixtures of the other sides.

    Args:
        material: Material whose validation mixtures stop training early, and give features their
            scale.
        teaching: Training of the taggers.
    """

    def __init__(self, material: Material, teaching: Teaching) -> None:
        self.material = material
        self.teaching = teaching

    def taught(
        self, power: NDArray[np.float32], targets: NDArray[np.integer], seed: int
    ) -> LinearTagger | Tagger:
        """Train a tagger.

        Args:
            power: Mel power, (mixtures, frames, bands).
            targets: Labels, 0 or 1, (mixtures, labels).
            seed: Seed of a network's weights and batches.
        """
        if self.teaching.kind is LearnerKind.LINEAR:
            return LinearTagger.trained(power, targets, self._scale)
        from earshot_studies.muschiol.tagging.examples import Examples

        validation = Examples.of(self._validation, self.material.validation.truth)
        shop = _workshop(power.shape[1:], self.material.labels, self.teaching)
        return shop.fit(Examples.of(power, targets), validation, seed)

    def asked(self, tagger: LinearTagger | Tagger) -> NDArray[np.float32]:
        """Return a tagger's output for validation, queries and test mixtures, (all, labels)."""
        if isinstance(tagger, LinearTagger):
            return tagger.heads.probabilities(self._features).astype(np.float32)
        return tagger.probabilities(self._power)

    @cached_property
    def _validation(self) -> NDArray[np.float32]:
        return self.material.validation.power()

    @cached_property
    def _scale(self) -> FeatureScale:
        return FeatureScale.of(self._validation)

    @cached_property
    def _power(self) -> NDArray[np.float32]:
        others = (self.material.queries.power(), self.material.test.power())
        return np.concatenate([self._validation, *others])

    @cached_property
    def _features(self) -> NDArray[np.float32]:
        return self._scale.features(self._power)


@lru_cache(maxsize=8)
def _workshop(shape: tuple[int, int], labels: tuple[str, ...], teaching: Teaching) -> Workshop:
    """Build a network once in each process, as building takes longer than training."""
    # Processes train in parallel, so one thread each.
    os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")
    os.environ.setdefault("TF_NUM_INTEROP_THREADS", "1")
    from earshot_studies.muschiol.tagging.mixup import Mixup
    from earshot_studies.muschiol.tagging.training import Training, Workshop

    settings = Training(
        steps=teaching.steps,
        every=_LOOKS,
        patience=_PATIENCE,
        mixup=Mixup() if teaching.mixup else None,
        balanced=teaching.balanced,
        weighted=teaching.weighted,
        adaptive=teaching.adaptive,
    )
    return Workshop(shape, labels, settings)
