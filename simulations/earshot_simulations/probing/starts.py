"""New start centroids for an encoder with the same network."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import numpy as np

from earshot_client.encoder import rate_of
from earshot_client.lite_rt_encoder import LiteRtEncoder
from earshot_models import origins, start_centroids
from earshot_models.components import Components
from earshot_models.origins import SoundSource
from earshot_protocol import encoder_file
from earshot_protocol.progress import Progress, silent

_BATCH = 256
"""Seconds that are embedded together."""
_FINDING = "finding start centroids"


def renewed(
    encoder: Path,
    sources: Sequence[SoundSource],
    synthesized: float,
    seed: int = 0,
    cache: Path | None = None,
    progress: Progress = silent,
) -> tuple[bytes, tuple[str, ...]]:
    """Learn start centroids from public sound, and put them into an encoder file.

    Args:
        encoder: Encoder file.
        sources: Sources of public sound; at least one unless all sound is synthesized.
        synthesized: Share of synthesized sound, 0 to 1.
        seed: Seed of the choice of seconds.
        cache: Folder for decoded sound.
        progress: Callback for progress.

    Returns:
        Encoder file with the same network, and the error of each unreadable file of sound.

    Raises:
        DamagedEncoderError: The file is not an encoder file.
        InvalidInputError: There is no sound, too little, or no file of a class can be read.
    """
    content, hears = encoder_file.read(encoder.read_bytes()), LiteRtEncoder.open(encoder)
    rate = rate_of(hears)
    pools = origins.read(
        sources,
        synthesized,
        seed,
        rate=rate,
        cache=cache,
        progress=progress,
    )
    seconds = start_centroids.wider(pools, start_centroids.SECONDS, seed, rate)
    embeddings = []
    for first in range(0, len(seconds), _BATCH):
        progress(_FINDING, first, len(seconds))
        embeddings.append(hears.embed(seconds[first : first + _BATCH]))
    components = Components(np.eye(hears.dimensions), content.mean(), content.scale())
    starts = start_centroids.learn(components, np.concatenate(embeddings), seed)
    progress(_FINDING, len(seconds), len(seconds))
    unreadable = tuple(chain.from_iterable(pool.unreadable for pool in pools))
    return encoder_file.with_start_centroids(content, starts), unreadable
