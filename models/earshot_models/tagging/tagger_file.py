"""A published tagger in one file: what Keras opens, with a card in the same archive.

Anybody with Keras can open it without Earshot. Earshot itself takes nothing but numbers from it:
the card names a network of `networks`, and only weights are read into it, so nothing in the file is
run.
"""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from earshot_models.tagging.evidence import LabelEvidence
from earshot_models.tagging.mel_power import MelSettings
from earshot_models.tagging.training import Tagger, Training, Workshop
from earshot_protocol import checks
from earshot_protocol.errors import EarshotError, InvalidInputError
from earshot_protocol.files import replacement
from earshot_protocol.privacy.mechanisms import Unit

SUFFIX = ".keras"
CARD = "earshot.json"
"""Name of the archive's entry that Keras does not know."""

MOST_BYTES = 2**20
"""Most bytes of a card; a larger one is not read."""


class DamagedTaggerError(InvalidInputError):
    """A file that is not a published tagger, or is incomplete; the message says what is wrong."""


class OtherTaggerError(InvalidInputError):
    """A tagger whose labels or spectrum are not the wanted ones."""


class TaggerCost(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Privacy cost to those whose data the tagger learned from.

    Attributes:
        epsilon, delta: Parameters of the guarantee.
        unit: Difference between neighbouring data sets.
        mechanism: Mechanism that gave the answers, and its noise, in words.
    """

    epsilon: float
    delta: float
    unit: Unit
    mechanism: str


class TaggerCard(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Facts that users of a tagger must know.

    Attributes:
        network: Name of the network, one of `networks.NAMES`.
        labels: Names of the labels, all different.
        mel: Settings of the tagger's input.
        level: Root mean square to which each clip is brought first.
        thresholds: Probabilities above which each label is named, (labels,).
        stated_by: Person or group that states all of this; nothing in the file proves it.
        trained: Description of the training, in words.
        cost: Privacy cost of the training; None if it is not stated: then the tagger must not be
            taken for private.
        evidence: Evidence for each label, on public sound not used for training or for thresholds;
            empty if there is none.
        format: Format version of this card.
    """

    network: str
    labels: tuple[str, ...]
    mel: MelSettings
    level: float
    thresholds: tuple[float, ...]
    stated_by: str
    trained: str
    cost: TaggerCost | None = None
    evidence: tuple[LabelEvidence, ...] = ()
    format: Literal[1] = 1

    def check(self) -> None:
        """Check that the parts of the card are consistent.

        Raises:
            InvalidInputError, InvalidParametersError: Parts of the card contradict each other; the
                message says which.
        """
        Training(self.network)
        number = len(self.labels)
        if not number or len(set(self.labels)) != number or not all(self.labels):
            raise InvalidInputError("labels: must be different names, at least one")
        if len(self.thresholds) != number:
            raise InvalidInputError(f"{len(self.thresholds)} thresholds: must be {number}")
        for name, threshold in zip(self.labels, self.thresholds, strict=True):
            checks.share(f"threshold of {name}", threshold)
        if self.evidence and len(self.evidence) != number:
            raise InvalidInputError(f"evidence of {len(self.evidence)} labels: must be {number}")
        for each in self.evidence:
            each.check()
        checks.positive("level", self.level, 1)
        if not self.stated_by.strip():
            raise InvalidInputError("stated_by: say who states the figures")
        if self.cost is not None:
            checks.epsilon("epsilon", self.cost.epsilon)
            checks.probability("delta", self.cost.delta)


@dataclass(frozen=True)
class PublishedTagger:
    """A tagger and its card.

    Attributes:
        card: Facts about the tagger.
        tagger: Tagger itself.
    """

    card: TaggerCard
    tagger: Tagger

    def named(self, probabilities: NDArray[np.floating]) -> NDArray[np.bool_]:
        """Return which probabilities exceed their thresholds, bool of the same shape."""
        above: NDArray[np.bool_] = np.asarray(probabilities) > np.array(self.card.thresholds)
        return above


def save(tagger: Tagger, card: TaggerCard, path: Path) -> None:
    """Write a tagger; the whole file is on the disk when this returns.

    Args:
        tagger: Trained tagger.
        card: Facts about the tagger.
        path: Path of the file, which ends in `.keras`.

    Raises:
        InvalidInputError: The card does not fit the tagger or contradicts itself, weights are not
            finite, the suffix is wrong, or the file cannot be written.
        InvalidParametersError: A number of the card is out of range.
    """
    card.check()
    shop = tagger.workshop
    described = (card.labels, card.mel.shape, card.network)
    if described != (tagger.labels, shop.shape, shop.settings.network):
        raise InvalidInputError(
            f"the card is of {len(card.labels)} labels, {card.mel.shape} and {card.network}, but "
            f"the tagger of {len(tagger.labels)} labels, {shop.shape} and {shop.settings.network}"
        )
    if path.suffix != SUFFIX:
        raise InvalidInputError(f"{path}: its name must end in {SUFFIX}")
    if not all(np.isfinite(array).all() for array in tagger.weights):
        raise InvalidInputError("the tagger's weights must be finite numbers")
    shop.restore(tagger.weights)
    try:
        with replacement(path) as draft:
            shop.model.save(draft)
            with zipfile.ZipFile(draft, "a") as archive:
                archive.writestr(CARD, msgspec.json.format(msgspec.json.encode(card), indent=1))
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be written: {error}") from error


def read_card(path: Path) -> TaggerCard:
    """Return the card of a published tagger, without opening the network.

    Raises:
        DamagedTaggerError: The file is not a tagger, or its card contradicts itself.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            if archive.getinfo(CARD).file_size > MOST_BYTES:
                raise DamagedTaggerError(f"{path}: its card is larger than {MOST_BYTES} bytes")
            card = msgspec.json.decode(archive.read(CARD), type=TaggerCard)
        card.check()
    except KeyError as error:
        raise DamagedTaggerError(
            f"{path} has no {CARD}: a model that was not saved as a tagger states neither the "
            "meaning of its numbers nor its input"
        ) from error
    except DamagedTaggerError:
        raise
    except (OSError, zipfile.BadZipFile, msgspec.MsgspecError, EarshotError) as error:
        raise DamagedTaggerError(f"{path} is not a published tagger: {error}") from error
    return card


def load(
    path: Path, labels: tuple[str, ...] | None = None, mel: MelSettings | None = None
) -> PublishedTagger:
    """Read a tagger; nothing in the file is run.

    Args:
        path: Tagger file.
        labels: Labels that it must have, in this order; None for any.
        mel: Input that it must take; None for any.

    Raises:
        DamagedTaggerError: The file is one that `read_card` refuses, or weights are not the
            network's or not finite.
        OtherTaggerError: The labels or the spectrum are not the wanted ones.
    """
    card = read_card(path)
    if labels is not None and card.labels != labels:
        raise OtherTaggerError(
            f"{path} names {', '.join(card.labels)}; wanted: {', '.join(labels)}"
        )
    if mel is not None and card.mel != mel:
        raise OtherTaggerError(f"{path} hears {card.mel}; wanted: {mel}")
    workshop = Workshop(card.mel.shape, card.labels, Training(card.network))
    weights = _weights(workshop, path)
    if not all(np.isfinite(array).all() for array in weights):
        raise DamagedTaggerError(f"{path} holds weights that are not finite numbers")
    return PublishedTagger(card, Tagger(card.labels, weights, (), workshop))


def _weights(workshop: Workshop, path: Path) -> tuple[NDArray[np.float32], ...]:
    model: Any = workshop.model
    before = [np.full(variable.shape, np.nan, np.float32) for variable in model.weights]
    # Weights that the file does not fill stay NaN, and are refused.
    workshop.restore(before)
    try:
        model.load_weights(path)
    except Exception as error:  # a damaged file may raise anything in a reader
        raise DamagedTaggerError(f"{path} holds no weights of its network: {error}") from error
    return tuple(variable.numpy() for variable in model.weights)
