"""Settings of generators and of their training."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from enum import Enum
from typing import Any

from earshot_protocol import checks
from earshot_protocol.errors import InvalidInputError, InvalidParametersError

MOST_PIXELS = 2**17
"""Most numbers in a clip, frames × bands: more than ten seconds of the largest spectrograms."""


class Network(Enum):
    """Networks that encoder, decoder and critics are made of; see `networks`."""

    DENSE = "dense"
    CONV = "conv"
    PAPER = "paper"


@dataclass(frozen=True)
class GeneratorSettings:
    """Settings of a generator and of its training.

    Attributes:
        network: Kind of network for encoder and decoder; critics of samples have the encoder's
            trunk.
        width: Units of the dense layers; convolutions have a quarter as many channels, in
            `Network.PAPER` as many. The critics of samples have `critic_width`.
        latent: Numbers that a sample is made from; 128 in Yang et al. (Interspeech 2021). A few
            hundred clips do not fill that many: an autoencoder's samples are then averages.
        steps: Steps of training, fixed in advance as a budget depends on them.
        batch: Samples in a step, on average if they are drawn by Poisson sampling.
        rate: Learning rate of Adam for the autoencoder or the generator.
        critic_rate: Learning rate of Adam for critics.
        critic_width: Units of critics.
        critic_steps: Steps of a critic before each step of a generator without an encoder.
        adversarial: Weight of the critic's loss beside the reconstruction's, in an autoencoder.
        dropout: Share of the latent numbers that a decoder drops in training.
        smoothing: Label smoothing: the target of a critic for real samples is 1 less this.
        jitter: Deviation of the smooth noise on the input of critics of samples at the first step;
            it falls linearly to 0. See `adversaries.smooth`.
        averaging: Share of the old values in the moving average of weights, which is published.

    Raises:
        InvalidParametersError: A number is out of range.
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

    def of_a_step(self) -> GeneratorSettings:
        """Return a copy with only the settings of a single step.

        One compiled program then serves many trainings.
        """
        return replace(self, steps=1, batch=1, critic_steps=1)


def plain(settings: GeneratorSettings) -> dict[str, Any]:
    """Return settings under plain names."""
    return {**asdict(settings), "network": settings.network.value}


def checked_shape(shape: tuple[int, int]) -> tuple[int, int]:
    """Return frames and bands, if networks can be built for them.

    Raises:
        InvalidInputError: No networks can be built for them.
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
