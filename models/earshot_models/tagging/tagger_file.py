"""A published tagger in one file: what Keras opens, with a card in the same archive.

Anybody with Keras can open it without Earshot. Earshot itself takes nothing but numbers from it:
the card names a network of `networks`, and only weights are read into that, so that nothing in the
file is run.
"""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from earshot_models.tagging.evidence import Evidence
from earshot_models.tagging.mel_power import MelSettings
from earshot_models.tagging.training import Tagger, Training, Workshop
from earshot_protocol import checks
from earshot_protocol.errors import EarshotError, InvalidInputError
from earshot_protocol.files import replacement
from earshot_protocol.privacy.mechanisms import Unit

SUFFIX = ".keras"
CARD = "earshot.json"
"""Of the archive's entries, the one that Keras does not know."""

MOST_BYTES = 2**20
"""Of a card; a larger one is not read."""


class DamagedTaggerError(InvalidInputError):
    """A file that is no published tagger, or not a whole one; says what is wrong."""


class OtherTaggerError(InvalidInputError):
    """A tagger of other labels or of another spectrum than was asked for."""


class Cost(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What those whose data the tagger learned from paid for it.

    Attributes:
        epsilon, delta: of the guarantee.
        unit: what neighbouring data sets differ in.
        mechanism: that gave the answers, and with which noise, in words.
    """

    epsilon: float
    delta: float
    unit: Unit
    mechanism: str


class Card(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What whoever uses a tagger must know of it.

    Attributes:
        network: one of `networks.NAMES`.
        labels: their names, all different.
        mel: what it hears.
        level: root mean square to which each clip is brought first.
        thresholds: above which probability each label is named, (labels,).
        stated_by: whose word all of this is; nothing in the file proves it.
        trained: how it came about, in words.
        cost: None if nobody says so: then it is not to be taken for private.
        evidence: of each label, on public sound that neither training nor thresholds were chosen
            on; empty if there is none.
        format: of this card.
    """

    network: str
    labels: tuple[str, ...]
    mel: MelSettings
    level: float
    thresholds: tuple[float, ...]
    stated_by: str
    trained: str
    cost: Cost | None = None
    evidence: tuple[Evidence, ...] = ()
    format: Literal[1] = 1

    def check(self) -> None:
        """See that its parts go together.

        Raises:
            InvalidInputError, InvalidParametersError: they do not; says which.
        """
        Training(self.network)
        number = len(self.labels)
        if not number or len(set(self.labels)) != number or not all(self.labels):
            raise InvalidInputError("labels: must be different names, one at least")
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
            raise InvalidInputError("stated_by: say whose word the figures are")
        if self.cost is not None:
            checks.epsilon("epsilon", self.cost.epsilon)
            checks.probability("delta", self.cost.delta)


@dataclass(frozen=True)
class PublishedTagger:
    """A tagger and its card.

    Attributes:
        card: what is said of it.
        tagger: what it is.
    """

    card: Card
    tagger: Tagger

    def named(self, probabilities: NDArray[np.floating]) -> NDArray[np.bool_]:
        """What lies above its thresholds, bool of the shape of the probabilities."""
        above: NDArray[np.bool_] = np.asarray(probabilities) > np.array(self.card.thresholds)
        return above


def save(tagger: Tagger, card: Card, path: Path) -> None:
    """Write a tagger; it is on the disk as a whole when this returns.

    Args:
        tagger: trained.
        card: what is said of it.
        path: ends in `.keras`.

    Raises:
        InvalidInputError: a card that does not fit the tagger or itself, weights that are no finite
            numbers, another suffix, or a file that cannot be written.
        InvalidParametersError: a number of the card is out of range.
    """
    card.check()
    shop = tagger.workshop
    described = (card.labels, card.mel.shape, card.network)
    if described != (tagger.labels, shop.shape, shop.settings.network):
        raise InvalidInputError(
            f"the card is of {len(card.labels)} labels, {card.mel.shape} and {card.network}, the "
            f"tagger of {len(tagger.labels)} labels, {shop.shape} and {shop.settings.network}"
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


def read_card(path: Path) -> Card:
    """What a published tagger says of itself, without opening the network.

    Raises:
        DamagedTaggerError: no file of a tagger, or a card that contradicts itself.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            if archive.getinfo(CARD).file_size > MOST_BYTES:
                raise DamagedTaggerError(f"{path}: its card is larger than {MOST_BYTES} bytes")
            card = msgspec.json.decode(archive.read(CARD), type=Card)
        card.check()
    except KeyError as error:
        raise DamagedTaggerError(
            f"{path} has no {CARD}: a model that was not saved as a tagger says neither what its "
            "numbers stand for nor what it hears"
        ) from error
    except DamagedTaggerError:
        raise
    except (OSError, zipfile.BadZipFile, msgspec.MsgspecError, EarshotError) as error:
        raise DamagedTaggerError(f"{path} is no published tagger: {error}") from error
    return card


def load(
    path: Path, labels: tuple[str, ...] | None = None, mel: MelSettings | None = None
) -> PublishedTagger:
    """Read a tagger; nothing in the file is run.

    Args:
        path: of the file.
        labels: that it must have, in this order; None for any.
        mel: what it must hear; None for anything.

    Raises:
        DamagedTaggerError: as `read_card`, or weights that are not the network's or not finite.
        OtherTaggerError: other labels or another spectrum than was asked for.
    """
    card = read_card(path)
    if labels is not None and card.labels != labels:
        raise OtherTaggerError(
            f"{path} names {', '.join(card.labels)}; asked for is {', '.join(labels)}"
        )
    if mel is not None and card.mel != mel:
        raise OtherTaggerError(f"{path} hears {card.mel}; asked for is {mel}")
    workshop = Workshop(card.mel.shape, card.labels, Training(card.network))
    weights = _weights(workshop, path)
    if not all(np.isfinite(array).all() for array in weights):
        raise DamagedTaggerError(f"{path} holds weights that are no finite numbers")
    return PublishedTagger(card, Tagger(card.labels, weights, (), workshop))


def _weights(workshop: Workshop, path: Path) -> tuple[NDArray[np.float32], ...]:
    model: Any = workshop.model
    before = [np.full(variable.shape, np.nan, np.float32) for variable in model.weights]
    # What the file does not fill stays NaN, and is found out.
    workshop.restore(before)
    try:
        model.load_weights(path)
    except Exception as error:  # whatever a damaged file makes of a reader
        raise DamagedTaggerError(f"{path} holds no weights of its network: {error}") from error
    return tuple(variable.numpy() for variable in model.weights)
