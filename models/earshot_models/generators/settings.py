"""How generators are built and trained, whatever they learn from."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from enum import Enum
from typing import Any

from earshot_protocol import checks
from earshot_protocol.errors import InvalidInputError, InvalidParametersError

MOST_PIXELS = 2**17
"""Of a clip, frames × bands: ten seconds of the largest spectrograms, with room to spare."""


class Network(Enum):
    """Which networks encoder, decoder and critics are made of; see `networks`."""

    DENSE = "dense"
    CONV = "conv"
    PAPER = "paper"


@dataclass(frozen=True)
class Settings:
    """Of a generator and of its training.

    Attributes:
        network: what encoder and decoder are made of; critics of samples have the encoder's trunk.
        width: units of the dense layers; convolutions have a quarter as many channels, in
            `Network.PAPER` as many. The critics of samples have `critic_width`.
        latent: numbers that a sample is made from; 128 in Yang et al. (Interspeech 2021). Some
            hundred clips do not fill so many: an autoencoder's samples are then averages.
        steps: of training; they are fixed before, so that a budget is.
        batch: samples in a step, on average where they are drawn by Poisson sampling.
        rate: of Adam, for the autoencoder or the generator.
        critic_rate: of Adam, for critics.
        critic_width: units of critics.
        critic_steps: that a critic takes before a generator without an encoder takes one.
        adversarial: weight of the critic's word against the reconstruction's, in an autoencoder.
        dropout: share of the latent numbers that a decoder loses in training.
        smoothing: a critic is told that real samples are real with 1 less this.
        jitter: deviation of the smooth noise on what critics of samples are shown, at the first
            step; it falls to none along a line. See `adversaries.smooth`.
        averaging: share that the published weights, an average over steps, keep of what they were.

    Raises:
        InvalidParametersError: a number is out of range.
    """

    network: Network = Network.CONV
    width: int = 256
    latent: int = 16
    steps: int = 2000
    batch: int = 64
    rate: float = 1e-3
    critic_rate: float = 1e-3
    critic_width: int = 128
    critic_steps: int = 1
    adversarial: float = 0.02
    dropout: float = 0.0
    smoothing: float = 0.1
    jitter: float = 0.3
    averaging: float = 0.99

    def __post_init__(self) -> None:
        if not isinstance(self.network, Network):
            raise InvalidParametersError(
                f"network={self.network!r}: must be one of "
                + ", ".join(f"Network.{network.name}" for network in Network)
            )
        checks.whole("width", self.width, 4, 2**14)
        checks.whole("latent", self.latent, 1, 2**14)
        checks.whole("steps", self.steps)
        checks.whole("batch", self.batch)
        checks.positive("rate", self.rate, 1)
        checks.positive("critic_rate", self.critic_rate, 1)
        checks.whole("critic_width", self.critic_width, 4, 2**14)
        checks.whole("critic_steps", self.critic_steps)
        checks.positive("adversarial", self.adversarial)
        checks.fraction("dropout", self.dropout)
        checks.between("smoothing", self.smoothing, 0, 0.49)
        checks.between("jitter", self.jitter, 0, 10)
        checks.fraction("averaging", self.averaging)

    def of_a_step(self) -> Settings:
        """The same, but for what no single step depends on: one program serves trainings."""
        return replace(self, steps=1, batch=1, critic_steps=1)


def plain(settings: Settings) -> dict[str, Any]:
    """Settings under plain names."""
    return {**asdict(settings), "network": settings.network.value}


def checked_shape(shape: tuple[int, int]) -> tuple[int, int]:
    """Frames and bands that networks can be built for.

    Raises:
        InvalidInputError: others.
    """
    try:
        frames, bands = (checks.whole("side", side, 1, MOST_PIXELS) for side in shape)
    except (InvalidParametersError, TypeError, ValueError):
        raise InvalidInputError(
            f"shape={shape}: must be frames and bands, two whole numbers"
        ) from None
    if frames * bands > MOST_PIXELS:
        raise InvalidInputError(f"shape={shape}: at most {MOST_PIXELS} frames × bands")
    return frames, bands
