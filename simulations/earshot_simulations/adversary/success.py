"""What an adversary achieved."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from earshot_protocol.geometry import nearest
from earshot_protocol.phases.learning import Result
from earshot_protocol.phases.named_centroids import NamedCentroids
from earshot_simulations.adversary.attack import TARGET_LABEL, Attack

_NEAR = 0.05
"""So far from its target a centroid is the adversary's: a blob's standard deviation."""


@dataclass(frozen=True)
class Success:
    """What an adversary achieved.

    Attributes:
        phones: how many make each attack, by its name in `Adversary`.
        controlled: how many make any.
        expected: γ · n, for how many noise and graph were made.
        refused: answers of theirs that the server refused.
        published: whether a centroid lies at its target in the published result; None if the phase
            ended without one.
        named: whether it carries the label that the adversary wanted.
        votes: noisy votes to keep that centroid; None if it was not published.
        share: of held-out recordings, none of which belongs there, that are nearest to it.
        displaced: kept centroids that were left without a name, the adversary's aside.
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


def measure(
    attack: Attack,
    expected: float,
    refused: int,
    result: NamedCentroids | None,
    held_out: npt.NDArray[np.float32],
) -> Success:
    """Compare a published result with the adversary's goal.

    Args:
        attack: who did what.
        expected: γ · n.
        refused: answers of corrupted phones that the server refused.
        result: what was published, if anything.
        held_out: float32 (recordings, dimensions), what nobody heard.
    """
    phones = {name: len(members) for name, members in attack.members.items() if members}
    success = Success(phones, len(attack.corrupted), expected, refused)
    if result is None:
        return success
    centroids = result.centroids.array()
    distances = np.linalg.norm(centroids - attack.target, axis=1)
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
            "share": float(np.mean(nearest(held_out, centroids, result.geometry) == at)),
            "displaced": sum(nameless) - nameless[at],
        }
    )


def _votes(result: NamedCentroids, at: int) -> float:
    """What keeps a centroid: a vote of its own, or the labels that lie in its cell."""
    if isinstance(result, Result):
        return result.centroid_votes[at]
    return sum(result.label_votes[at])
