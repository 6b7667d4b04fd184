"""Publication of a trained student in a file, with its thresholds and the evidence for them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from earshot_models.tagging import tagger_file
from earshot_models.tagging.evidence import best_thresholds, gathered
from earshot_models.tagging.examples import Examples
from earshot_models.tagging.mel_power import MelSettings
from earshot_models.tagging.tagger_file import TaggerCard, TaggerCost
from earshot_models.tagging.training import Tagger
from earshot_protocol.errors import InvalidInputError


def publish(
    tagger: Tagger,
    mel: MelSettings,
    level: float,
    validation: Examples,
    test: Examples,
    cost: TaggerCost | None,
    stated_by: str,
    trained: str,
    path: Path,
) -> TaggerCard:
    """Choose thresholds, count how often they are wrong on other clips, and write the file.

    Everything in the file is published: validation and test clips must be public too, or have been
    paid for.

    Args:
        tagger: Student to publish.
        mel: Settings of the student's input.
        level: Root mean square of the clips that the student learned from.
        validation: Clips on which thresholds are chosen, with targets 0 or 1.
        test: Clips of other recordings, on which names are counted.
        cost: Privacy cost of the answers that the student learned from; None if they were not
            private.
        stated_by: Person or group that states the figures.
        trained: Description of the training, in words.
        path: Path of the file, which ends in `.keras`.

    Returns:
        Card of the file.

    Raises:
        InvalidInputError: The same clips are given for validation and test, targets are between 0
            and 1, or `tagger_file.save` refuses the tagger.
        InvalidParametersError: A number of the card is out of range.
    """
    if np.array_equal(validation.power, test.power):
        raise InvalidInputError("test: must not be the clips on which thresholds are chosen")
    probabilities = tagger.probabilities(validation.power)
    thresholds = best_thresholds(_truth(validation), probabilities)
    evidence = gathered(_truth(test), tagger.probabilities(test.power), thresholds)
    card = TaggerCard(
        network=tagger.workshop.settings.network,
        labels=tagger.labels,
        mel=mel,
        level=level,
        thresholds=tuple(thresholds.tolist()),
        stated_by=stated_by,
        trained=trained,
        cost=cost,
        evidence=evidence,
    )
    tagger_file.save(tagger, card, path)
    return card


def _truth(examples: Examples) -> NDArray[np.int8]:
    if not np.isin(examples.targets, (0, 1)).all():
        raise InvalidInputError("targets: must be 0 or 1 where a tagger is checked")
    return examples.targets.astype(np.int8)
