"""A start from public sound: weights that no sensitive clip has moved.

What a private training begins with is published as it is, as far as noise leaves it, so it must be
of public sound alone. It changes nothing of what a training costs: neighbours begin alike.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import jax
import numpy as np

from earshot_models.generators.networks import Shape
from earshot_models.generators.origin import Origin, OriginKind
from earshot_models.generators.settings import Settings, plain
from earshot_protocol.errors import InvalidParametersError

Networks = TypeVar("Networks")

_FORM = ("network", "width", "latent", "critic_width", "dropout")
"""Settings that decide which numbers networks have."""


class NotPublicStartError(InvalidParametersError):
    """A start that sensitive sound has moved, so that no noise would protect it."""


@dataclass(frozen=True)
class Start(Generic[Networks]):
    """Networks that have learned.

    Attributes:
        networks: weights, of all networks of a system.
        shape: frames and bands of a clip.
        settings: of the networks and their training.
        origin: what they have learned from.
    """

    networks: Networks
    shape: Shape
    settings: Settings
    origin: Origin

    @property
    def digest(self) -> str:
        """A name for exactly these weights."""
        whole = hashlib.sha256(repr(jax.tree.structure(self.networks)).encode())
        for leaf in jax.tree.leaves(self.networks):
            whole.update(repr(leaf.shape).encode() + np.asarray(leaf, "<f4").tobytes())
        return whole.hexdigest()


def about_start(start: Start[Any] | None) -> dict[str, str]:
    """What a checkpoint says of a start."""
    return {} if start is None else {"start": start.digest}


def begun(
    fresh: Networks, start: Start[Networks] | None, shape: Shape, settings: Settings
) -> Networks:
    """Weights that a private training begins with.

    Args:
        fresh: random ones; the start's must be of their form.
        start: of public sound; None for the random ones.
        shape: of the clips.
        settings: of the training.

    Raises:
        NotPublicStartError: the start is not of public sound alone.
        InvalidParametersError: it is of clips of another shape, of other networks, or of another
            system.
    """
    if start is None:
        return fresh
    if start.origin.kind is not OriginKind.PUBLIC:
        raise NotPublicStartError(
            f"start: {start.origin.text}; a private training adds no noise to what it starts "
            "with, so it must be trained on public sound alone"
        )
    if start.shape != shape:
        raise InvalidParametersError(
            f"start: of clips of {start.shape[0]} frames × {start.shape[1]} bands; the clips here "
            f"are {shape[0]} × {shape[1]}"
        )
    theirs, ours = plain(start.settings), plain(settings)
    other = [name for name in _FORM if theirs[name] != ours[name]]
    if other:
        raise InvalidParametersError(
            "start: of other networks: "
            + ", ".join(f"{name}={theirs[name]} instead of {ours[name]}" for name in other)
        )
    if not _alike(start.networks, fresh):
        raise InvalidParametersError(
            f"start: {type(start.networks).__module__} of another system; must be of "
            f"{type(fresh).__module__}"
        )
    return start.networks


def _alike(one: Any, other: Any) -> bool:
    """Whether networks are of the same form, numbers aside."""
    forms = [
        (str(jax.tree.structure(each)), [leaf.shape for leaf in jax.tree.leaves(each)])
        for each in (one, other)
    ]
    return forms[0] == forms[1]
