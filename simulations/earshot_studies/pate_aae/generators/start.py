"""A start from public sound: pretrained weights, and the public clips of their training.

A private training may reveal its start, so that must be trained on public sound alone. A start does
not change the cost of a training: neighbouring data sets have the same start and public clips.
Training continues on the public clips, too, because noise would soon destroy the start: Adam's
steps are as long for noise as for a signal.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import jax
import numpy as np

from earshot_protocol import checks
from earshot_protocol.errors import InvalidParametersError
from earshot_studies.pate_aae.generators import clips as checked
from earshot_studies.pate_aae.generators.clips import Clips
from earshot_studies.pate_aae.generators.generator import Generator
from earshot_studies.pate_aae.generators.networks import Decoder, Shape
from earshot_studies.pate_aae.generators.origin import Origin, OriginKind
from earshot_studies.pate_aae.generators.settings import GeneratorSettings, plain


class Decodes(Protocol):
    """Networks of any system."""

    @property
    def decoder(self) -> Decoder:
        """Network that makes clips."""


Networks = TypeVar("Networks", bound=Decodes)

_FORM = ("network", "width", "latent", "critic_width", "dropout")
"""Settings that determine the form of networks."""


class NotPublicStartError(InvalidParametersError):
    """A start that was trained on sensitive sound, which later noise cannot protect."""


@dataclass(frozen=True)
class Start(Generic[Networks]):
    """Networks that were trained on clips.

    Attributes:
        networks: Weights of all networks of a system.
        shape: Frames and bands of a clip.
        settings: Settings of the networks and their training.
        origin: Sound that they were trained on.
        clips: Clips that they were trained on, (clips, frames, bands) in [−1, 1].
        share: Share of sensitive clips, through noise or votes, in the gradients of critics and
            autoencoders in a private training; public clips have the rest. It must not depend on
            sensitive clips, but may depend on the noise.

    Raises:
        InvalidParametersError: The share is out of range.
    """

    networks: Networks
    shape: Shape
    settings: GeneratorSettings
    origin: Origin
    clips: Clips
    share: float = 0.5

    def __post_init__(self) -> None:
        checks.positive("share", self.share, 1)

    @property
    def generator(self) -> Generator:
        """Generator that makes clips with these networks alone."""
        return Generator(self.networks.decoder, self.shape, self.settings, self.origin)

    @property
    def digest(self) -> str:
        """Digest of these weights and clips, and their share."""
        form = f"{self.share!r} {checked.digest(self.clips)} {jax.tree.structure(self.networks)}"
        whole = hashlib.sha256(form.encode())
        for leaf in jax.tree.leaves(self.networks):
            whole.update(repr(leaf.shape).encode() + np.asarray(leaf, "<f4").tobytes())
        return whole.hexdigest()


def about_start(start: Start[Any] | None) -> dict[str, str]:
    """Return a checkpoint's description of a start."""
    return {} if start is None else {"start": start.digest}


def begun(
    fresh: Networks, start: Start[Networks] | None, shape: Shape, settings: GeneratorSettings
) -> Networks:
    """Return the weights that a private training begins with.

    Args:
        fresh: Random weights; the start's must have their form.
        start: Start from public sound; None for the random weights.
        shape: Frames and bands of the clips.
        settings: Settings of the training.

    Raises:
        NotPublicStartError: The start is not of public sound alone.
        InvalidParametersError: The start has clips of another shape, other networks, or another
            system.
    """
    if start is None:
        return fresh
    if start.origin.kind is not OriginKind.PUBLIC:
        raise NotPublicStartError(
            f"start: {start.origin.text}; a private training adds no noise to its start, which "
            "must be trained on public sound alone"
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
    """Return whether networks have the same form, apart from their numbers."""
    forms = [
        (str(jax.tree.structure(each)), [leaf.shape for leaf in jax.tree.leaves(each)])
        for each in (one, other)
    ]
    return forms[0] == forms[1]
