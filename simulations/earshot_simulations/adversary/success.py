"""The success of an adversary."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from earshot_client.labels import UNLABELLED
from earshot_protocol.geometry import nearest
from earshot_protocol.phases.discovery import Discovered
from earshot_protocol.phases.learning import Result
from earshot_protocol.phases.named_centroids import NamedCentroids
from earshot_protocol.phases.places import Places
from earshot_simulations.adversary.adversary import Adversary
from earshot_simulations.adversary.attack import Attacks
from earshot_simulations.adversary.built_in import SWAPPED, TARGET_LABEL
from earshot_simulations.populations import Recordings

_NEAR = 0.05
"""Distance within which a centroid counts as the adversary's: a blob's standard deviation."""


@dataclass(frozen=True)
class Success:
    """The success of an adversary.

    Attributes:
        phones: Number of phones that make each attack, by its name.
        controlled: Number of phones that make any attack.
        expected: Corrupted phones that the noise and the graph allow for, γ · n.
        refused: Answers of corrupted phones that the server refused.
        published: Whether the published result has a centroid at the target; None if the phase
            ended without a result, or no attack has a target.
        named: Whether that centroid carries the label that the adversary wanted.
        votes: Noisy votes to keep that centroid, or length of that prototype; None if it was not
            published.
        share: Fraction of held-out recordings nearest to that centroid, although none belongs
            there.
        displaced: Kept centroids, other than the adversary's, that were left without a name.
        misnamed: Fraction of held-out recordings that get a wrong name intended by the adversary:
            the other of two swapped labels, or the last label.
    """

    phones: dict[str, int]
    controlled: int
    expected: float
    refused: int
    published: bool | None = None
    named: bool = False
    votes: float | None = None
    share: float = 0.0
    displaced: int = 0
    misnamed: float = 0.0


def measure(
    attacks: Attacks,
    expected: float,
    refused: int,
    result: NamedCentroids | None,
    held_out: Recordings,
) -> Success:
    """Compare a published result with the adversary's goal.

    Args:
        attacks: Corrupted phones and their target.
        expected: Corrupted phones that were planned for, γ · n.
        refused: Answers of corrupted phones that the server refused.
        result: Published result, or None.
        held_out: Recordings that no phone heard.
    """
    made = attacks.members
    order = [*(each.name for each in fields(Adversary)), *made]
    phones = {name: len(made[name]) for name in sorted(made, key=order.index)}
    success = Success(phones, len(attacks.corrupted), expected, refused)
    if result is None:
        return success
    success = replace(success, misnamed=_misnamed(attacks, result, held_out))
    if attacks.target is None:
        return success
    centroids = result.centroids.array()
    distances = np.linalg.norm(centroids - attacks.target, axis=1)
    at = int(np.argmin(distances))
    nameless = [name is None for name in result.names]
    if distances[at] > _NEAR:
        return Success(**vars(success) | {"published": False, "displaced": sum(nameless)})
    return Success(
        **vars(success)
        | {
            "published": True,
            "named": result.labels[at] == TARGET_LABEL,
            "votes": _votes(result, at),
            "share": float(np.mean(nearest(held_out.points, centroids, result.geometry) == at)),
            "displaced": sum(nameless) - nameless[at],
        }
    )


def _misnamed(attacks: Attacks, result: NamedCentroids, held_out: Recordings) -> float:
    """Return the fraction of recordings that get the wrong name intended by the adversary."""
    wanted = np.full(len(held_out.scenes), UNLABELLED)
    if attacks.members.get("swapped_labels"):
        one, other = SWAPPED
        wanted[held_out.scenes == one], wanted[held_out.scenes == other] = other, one
    if attacks.members.get("one_label"):
        last = len(result.label_names) - 1
        wanted[(held_out.scenes != last) & (wanted == UNLABELLED)] = last
    number = {name: label for label, name in enumerate(result.label_names)}
    said = [
        number.get(name or "", UNLABELLED) for name in Places.of(result).nearest(held_out.points)
    ]
    return float(np.mean((np.array(said) == wanted) & (wanted != UNLABELLED)))


def _votes(result: NamedCentroids, at: int) -> float | None:
    """Return the votes that keep a centroid, or the length of a prototype."""
    if isinstance(result, Result):
        return result.centroid_votes[at]
    return result.lengths[at] if isinstance(result, Discovered) else None
