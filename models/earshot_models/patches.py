"""Patch codes: how strongly a spectrum matches each patch of a dictionary learned without labels.

Spherical k-means on whitened patches and soft-thresholded codes: Coates and Ng, Learning Feature
Representations with K-Means (2012), sections 2 to 4; for sounds of cities Salamon and Bello,
Unsupervised Feature Learning for Urban Sound Classification (2015). It has few parameters, so a few
hundred recordings are enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
from keras import ops
from numpy.typing import NDArray

from earshot_protocol.errors import InvalidInputError
from earshot_protocol.overriding import override
from earshot_protocol.spectrum import BANDS

LENGTH = 12
"""Frames of a patch."""

_STRIDE = 2
_WHITENED = 64
"""Principal components kept of each patch."""

_THRESHOLD = 0.1
"""Cosine below which a patch does not match an atom."""

_RANGE = np.float32(40 * np.log(10) / 10)
"""Range below a second's loudest number, 40 dB in the units of log-mel spectra. Lower values are
clipped: they vanish in a pocket, and mostly reflect how quiet a recording was."""

_EXAMPLES = 30_000
_LEAST_NORM = 1e-6


@dataclass(frozen=True)
class Atoms:
    """Typical patches.

    Attributes:
        whitening: Matrix that a patch is multiplied by once `mean` is subtracted, float32
            (12 · 64, components).
        mean: Mean patch, float32 (12 · 64,).
        directions: Unit columns of whitened patches, float32 (components, atoms).
    """

    whitening: NDArray[np.float32]
    mean: NDArray[np.float32]
    directions: NDArray[np.float32]


def learn(spectra: NDArray[np.floating], count: int, seed: int) -> Atoms:
    """Cluster patches of spectra by cosine.

    Args:
        spectra: Log-mel spectra of public sound, (examples, 61, 64, 1).
        count: Number of atoms, at least 2.
        seed: Seed of the choice of patches and of the clustering.

    Raises:
        InvalidInputError: There are fewer patches than atoms or components.
    """
    from sklearn.cluster import MiniBatchKMeans
    from sklearn.decomposition import PCA
    from sklearn.preprocessing import normalize

    generator = np.random.default_rng([seed, 4])
    spectra = np.maximum(spectra, spectra.max(axis=(1, 2, 3), keepdims=True) - _RANGE)
    level = spectra.mean(axis=(1, 2, 3), keepdims=True)
    bands = (spectra - level)[..., 0]
    windows = np.lib.stride_tricks.sliding_window_view(bands, LENGTH, axis=1)[:, ::_STRIDE]
    patches = windows.transpose(0, 1, 3, 2).reshape(-1, LENGTH * BANDS)
    if len(patches) < max(count, _WHITENED):
        raise InvalidInputError(
            f"{len(patches)} patches are too few to learn {count} atoms from: at least "
            f"{max(count, _WHITENED)} are needed"
        )
    chosen = patches[generator.permutation(len(patches))[:_EXAMPLES]]
    principal = PCA(_WHITENED, svd_solver="covariance_eigh").fit(chosen)
    scale = np.sqrt(np.maximum(principal.explained_variance_, _LEAST_NORM))
    whitening = principal.components_.T / scale
    whitened = normalize((chosen - principal.mean_) @ whitening)
    clusters = MiniBatchKMeans(count, random_state=seed, n_init=1, batch_size=2048).fit(whitened)
    return Atoms(
        np.asarray(whitening, dtype=np.float32),
        np.asarray(principal.mean_, dtype=np.float32),
        np.asarray(normalize(clusters.cluster_centers_).T, dtype=np.float32),
    )


class Patches(keras.layers.Layer):  # type: ignore[misc]  # Keras has no types
    """Log-mel spectra (batch, 61, 64, 1) → (batch, 2 · atoms).

    For each atom, the mean and the maximum over time of the amount by which the cosine between it
    and a whitened patch exceeds 0.1. Spectra are limited to 40 dB below the second's loudest
    number.
    """

    def __init__(self, atoms: Atoms) -> None:
        super().__init__()
        self._atoms = atoms
        self._kernel = atoms.whitening.reshape(LENGTH, BANDS, 1, -1)
        self._offset = atoms.mean @ atoms.whitening

    @override
    def call(self, spectrum: Any) -> Any:
        loudest = ops.max(spectrum, axis=(1, 2, 3), keepdims=True)
        spectrum = ops.maximum(spectrum, loudest - _RANGE)
        level = ops.mean(spectrum, axis=(1, 2, 3), keepdims=True)
        whitened = ops.conv(spectrum - level, self._kernel, strides=_STRIDE, padding="valid")
        whitened = ops.squeeze(whitened, axis=2) - self._offset
        length = ops.sqrt(ops.sum(ops.square(whitened), axis=2, keepdims=True))
        cosines = ops.matmul(whitened / ops.maximum(length, _LEAST_NORM), self._atoms.directions)
        codes = ops.relu(cosines - _THRESHOLD)
        return ops.concatenate([ops.mean(codes, axis=1), ops.max(codes, axis=1)], axis=1)
