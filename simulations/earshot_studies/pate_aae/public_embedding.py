"""An embedding of pictures of sound that is fitted to public sound alone.

The Fréchet distance of generated to real clips is that of their embeddings. An embedding fitted to
sensitive clips would leak them into every published figure. Here a small network learns to classify
public sound, and its last hidden layer, rotated and scaled so that public sound has unit
covariance, is the embedding.
"""

from __future__ import annotations

import hashlib
import json
import warnings
import zipfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earshot_protocol import checks
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.files import replacement

NOTE = "public embedding: not fitted to the sensitive clips"
"""Remark for every page with a distance by such an embedding."""

_VERSION = 1
"""Cache format version; part of the key."""
_AT_ONCE = 1024
"""Pictures in one step of embedding."""
_BATCH = 128
_DECAY = 1e-3


@dataclass(frozen=True)
class EmbeddingSettings:
    """Settings of the fit of an embedding.

    Attributes:
        dimensions: Dimensions of an embedding, at most the units of the last hidden layer.
        hidden: Units of the two hidden layers.
        copies: Copies of each picture, shifted and made louder or softer at random.
        shift: Largest shift of a copy, in frames.
        gain: Largest change of a copy's loudness, on the scale [-1, 1] of pictures.
        passes: Passes over all copies.
        seed: Seed of weights, copies and order.

    Raises:
        InvalidParametersError: A number is out of range.
    """

    dimensions: int = 32
    hidden: tuple[int, int] = (128, 64)
    copies: int = 6
    shift: int = 4
    gain: float = 0.2
    passes: int = 25
    seed: int = 0

    def __post_init__(self) -> None:
        for units in self.hidden:
            checks.whole("hidden", units)
        checks.whole("dimensions", self.dimensions, 1, self.hidden[-1])
        checks.whole("copies", self.copies)
        checks.whole("shift", self.shift, 0)
        checks.share("gain", self.gain)
        checks.whole("passes", self.passes)
        checks.whole("seed", self.seed, 0)


@dataclass(frozen=True)
class PublicEmbedding:
    """A fitted embedding.

    Attributes:
        shape: Frames and bands of the pictures that it embeds.
        weights: Weights of the hidden layers, each (units before, units).
        biases: Biases of the hidden layers, each (units,).
        mean: Mean of the last layer on public sound, (units,).
        whitening: Whitening matrix, float64 (units, dimensions).
    """

    shape: tuple[int, int]
    weights: tuple[NDArray[np.float64], ...]
    biases: tuple[NDArray[np.float64], ...]
    mean: NDArray[np.float64]
    whitening: NDArray[np.float64]

    @property
    def dimensions(self) -> int:
        """Dimensions of an embedding."""
        return int(self.whitening.shape[1])

    def embed(self, pictures: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return embeddings of pictures.

        Args:
            pictures: Pictures, (n, frames, bands) in [-1, 1].

        Returns:
            Embeddings, float64 (n, dimensions).

        Raises:
            InvalidInputError: The shape differs, or numbers are not finite.
        """
        given = _checked(pictures, self.shape)
        found = np.empty((len(given), self.dimensions))
        for start in range(0, len(given), _AT_ONCE):
            layer = _flat(given[start : start + _AT_ONCE])
            layer = _last_layer(layer, self.weights, self.biases)
            found[start : start + _AT_ONCE] = (layer - self.mean) @ self.whitening
        return found


def fit(
    pictures: NDArray[np.float32],
    labels: Sequence[str],
    settings: EmbeddingSettings | None = None,
) -> PublicEmbedding:
    """Fit an embedding that separates these classes.

    Args:
        pictures: Pictures of public sound, (n, frames, bands) in [-1, 1].
        labels: Classes of the pictures, at least two different ones.
        settings: Settings of the fit; None for the defaults.

    Raises:
        InvalidInputError: Pictures or labels are invalid or do not fit, the pictures are fewer
            than the dimensions, or the sounds are too similar.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier

    chosen = settings or EmbeddingSettings()
    given = _checked(pictures, np.shape(pictures)[1:])
    names = np.asarray(labels, dtype=np.str_)
    if names.shape != (len(given),):
        raise InvalidInputError(f"{names.size} labels for {len(given)} pictures: must be one each")
    if len(np.unique(names)) < 2:
        raise InvalidInputError("labels: public sound must have at least two classes")
    if len(given) < chosen.dimensions:
        raise InvalidInputError(
            f"{len(given)} public pictures: an embedding of {chosen.dimensions} dimensions needs "
            "at least that many"
        )
    generator = np.random.default_rng(chosen.seed)
    copies = np.concatenate(
        [given, *(_copy(given, chosen, generator) for _ in range(1, chosen.copies))]
    )
    network = MLPClassifier(
        chosen.hidden,
        activation="tanh",
        alpha=_DECAY,
        batch_size=min(_BATCH, len(copies)),
        max_iter=chosen.passes,
        random_state=chosen.seed,
    )
    with warnings.catch_warnings():
        # The number of passes is a setting, so convergence is not required.
        warnings.filterwarnings("ignore", category=ConvergenceWarning)
        network.fit(_flat(copies), np.tile(names, chosen.copies))
    weights = tuple(np.asarray(each, dtype=np.float64) for each in network.coefs_[:-1])
    biases = tuple(np.asarray(each, dtype=np.float64) for each in network.intercepts_[:-1])
    layer = _last_layer(_flat(copies), weights, biases)
    return PublicEmbedding(
        (given.shape[1], given.shape[2]),
        weights,
        biases,
        layer.mean(axis=0),
        _whitening(layer, chosen.dimensions),
    )


def kept(
    folder: Path,
    pictures: NDArray[np.float32],
    labels: Sequence[str],
    settings: EmbeddingSettings | None = None,
) -> PublicEmbedding:
    """Return the embedding of `fit`, from a cache if it was fitted to the same inputs before.

    Args:
        folder: Folder of the cache; created if it does not exist.
        pictures: Pictures, as for `fit`.
        labels: Labels, as for `fit`.
        settings: Settings, as for `fit`.

    Raises:
        InvalidInputError: The pictures or labels are invalid; see `fit`.
    """
    chosen = settings or EmbeddingSettings()
    path = folder / f"embedding-{_key(pictures, labels, chosen)}.npz"
    found = _load(path)
    if found is None:
        found = fit(pictures, labels, chosen)
        folder.mkdir(parents=True, exist_ok=True)
        _save(found, path)
    return found


def _checked(pictures: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
    table = np.asarray(pictures)
    if table.ndim != 3 or table.shape[1:] != tuple(shape) or 0 in table.shape[1:]:
        wanted = " × ".join(map(str, shape)) if len(shape) == 2 else "frames × bands"
        raise InvalidInputError(f"pictures of shape {table.shape}: must be n × {wanted}")
    if table.dtype.kind != "f" or not np.isfinite(table).all():
        raise InvalidInputError(f"pictures of {table.dtype}: must be finite floating-point numbers")
    return table.astype(np.float64)


def _flat(pictures: NDArray[np.float64]) -> NDArray[np.float64]:
    return pictures.reshape(len(pictures), -1)


def _copy(
    pictures: NDArray[np.float64], settings: EmbeddingSettings, generator: np.random.Generator
) -> NDArray[np.float64]:
    """Shift each picture in time and make it louder or softer, except for silence."""
    moves = generator.integers(-settings.shift, settings.shift + 1, len(pictures))
    gains = generator.uniform(-settings.gain, settings.gain, len(pictures))
    moved = np.stack(
        [np.roll(each, move, axis=0) for each, move in zip(pictures, moves, strict=True)]
    )
    louder = moved + gains[:, None, None] * (moved > -1)
    return np.clip(louder, -1, 1)


def _last_layer(
    layer: NDArray[np.float64],
    weights: Sequence[NDArray[np.float64]],
    biases: Sequence[NDArray[np.float64]],
) -> NDArray[np.float64]:
    for weight, bias in zip(weights, biases, strict=True):
        layer = np.tanh(layer @ weight + bias)
    return layer


def _whitening(layer: NDArray[np.float64], dimensions: int) -> NDArray[np.float64]:
    """Return the directions of most variance, each scaled to unit variance."""
    values, vectors = np.linalg.eigh(np.cov(layer, rowvar=False))
    values, vectors = values[::-1][:dimensions], vectors[:, ::-1][:, :dimensions]
    if not values[-1] > 1e-9 * values[0]:
        raise InvalidInputError(
            f"public sounds are too similar for an embedding of {dimensions} dimensions: give "
            "more of them, or use fewer dimensions"
        )
    # An eigenvector's sign depends on the linear algebra library; fix it.
    signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(dimensions)])
    return np.asarray(vectors * signs / np.sqrt(values), dtype=np.float64)


def _key(pictures: NDArray[np.float32], labels: Sequence[str], settings: EmbeddingSettings) -> str:
    about = [_VERSION, asdict(settings), list(np.shape(pictures)), list(map(str, labels))]
    digest = hashlib.sha256(json.dumps(about).encode())
    digest.update(np.ascontiguousarray(pictures, dtype="<f4").tobytes())
    return digest.hexdigest()[:32]


def _load(path: Path) -> PublicEmbedding | None:
    """Return the cached embedding, or None if there is no complete one."""
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            layers = range(int(file["layers"]))
            frames, bands = file["shape"].tolist()
            return PublicEmbedding(
                (frames, bands),
                tuple(file[f"weights {each}"] for each in layers),
                tuple(file[f"biases {each}"] for each in layers),
                file["mean"],
                file["whitening"],
            )
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None


def _save(embedding: PublicEmbedding, path: Path) -> None:
    arrays: dict[str, Any] = {
        "layers": len(embedding.weights),
        "shape": embedding.shape,
        "mean": embedding.mean,
        "whitening": embedding.whitening,
    }
    for place, (weight, bias) in enumerate(zip(embedding.weights, embedding.biases, strict=True)):
        arrays[f"weights {place}"], arrays[f"biases {place}"] = weight, bias
    with replacement(path) as draft:
        np.savez(draft, **arrays)
