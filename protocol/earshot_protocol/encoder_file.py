"""The encoder file: a LiteRT model in front, an archive with its card and credits behind.

TFLite's own metadata keeps associated files in the same way: a program that runs such a model reads
the front, one that unpacks archives the back.
"""

from __future__ import annotations

import hashlib
import hmac
import io
import json
import zipfile
import zlib
from collections.abc import Iterable
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from earshot_protocol.errors import LocalError
from earshot_protocol.spectrum import NARROW, SPECTRA, Spectrum
from earshot_protocol.start_centroids import CentroidSet, chosen, flaw
from earshot_protocol.text import line

DIMENSIONS = 128
"""Length of every embedding."""

FORMAT = 1
MOST_BYTES = 16 * 2**20
"""Largest size of an encoder file that is read, in bytes."""
LARGEST_NAME = 64
"""Most characters in an encoder's name."""

CARD, CREDITS = "encoder.json", "CREDITS.txt"

_EARLIEST = (1980, 1, 1, 0, 0, 0)
"""Timestamp of every entry of the archive, so that equal content makes equal files."""


class DamagedEncoderError(LocalError):
    """An invalid encoder file; the message says what is wrong."""


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """Facts that a phone must know about its encoder.

    Attributes:
        format: Version of the file format, 1.
        name: Name that identifies the encoder; embeddings of two encoders do not compare.
        dimensions: Length of an embedding, 128.
        sha256: SHA-256 of the model, hexadecimal.
        length: Length of the model, in bytes.
        quantization: Type of the weights.
        features: Name of the spectrum that the network is given.
        mean: Mean of each coordinate over public sound.
        scale: Scale of each coordinate, for `Encoder.project`.
        trained: Record of how the encoder was trained.
        start_centroids: Public points of the projection, each number of dimensions and of centroids
            at most once.
    """

    format: int
    name: str
    dimensions: int
    sha256: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$(?!\n)")]
    length: int
    quantization: Literal["float32", "int8"]
    features: Annotated[str, line(LARGEST_NAME)]
    mean: tuple[float, ...]
    scale: tuple[float, ...]
    trained: dict[str, str | int | float | bool | None] = {}
    start_centroids: tuple[CentroidSet, ...] = ()


class EncoderFile(msgspec.Struct, frozen=True):
    """Checked content of an encoder file.

    Attributes:
        model: Flatbuffer for LiteRT.
        card: Facts about the encoder.
        credits: Credits for the sound that the encoder was trained on.
    """

    model: bytes
    card: Card
    credits: str

    def mean(self) -> NDArray[np.float32]:
        """Return the card's `mean`, float32 (128,)."""
        return np.array(self.card.mean, dtype=np.float32)

    def scale(self) -> NDArray[np.float32]:
        """Return the card's `scale`, float32 (128,)."""
        return np.array(self.card.scale, dtype=np.float32)

    @property
    def spectrum(self) -> Spectrum:
        """Spectrum that the network is given."""
        return SPECTRA[self.card.features]

    def start_centroids(self, dimensions: int, count: int) -> NDArray[np.float32]:
        """Return the card's start centroids, float32 (count, dimensions), unit rows, a new copy.

        Raises:
            MissingCentroidsError: The card has none, or not these; the message says which it has.
        """
        return chosen(self.card.start_centroids, self.card.name, dimensions, count)


def check_size(size: int) -> None:
    """Refuse a file, or an entry of its archive, by its size in bytes before it is read.

    Raises:
        DamagedEncoderError: The size is larger than `MOST_BYTES`.
    """
    if size > MOST_BYTES:
        raise DamagedEncoderError(
            f"an encoder file has at most {MOST_BYTES / 2**20:g} MiB, this one has "
            f"{size / 2**20:.4g} MiB"
        )


def read(data: bytes) -> EncoderFile:
    """Read and check an encoder file.

    Raises:
        DamagedEncoderError: The data are not an encoder file, have another format or were altered.
    """
    check_size(len(data))
    card, credits_ = _unpack(data)
    _check(card)
    model = data[: card.length]
    digest = hashlib.sha256(model).hexdigest()
    if len(model) != card.length or not hmac.compare_digest(digest, card.sha256):
        raise DamagedEncoderError(
            f"the model of encoder '{card.name}' is not the one that its card describes: get the "
            "file again"
        )
    return EncoderFile(model, card, credits_)


def pack(
    model: bytes,
    name: str,
    int8: bool,
    mean: Iterable[float],
    scale: Iterable[float],
    trained: dict[str, Any],
    credits_: str,
    start_centroids: Iterable[NDArray[np.floating]] = (),
    spectrum: Spectrum = NARROW,
) -> bytes:
    """Return the bytes of an encoder file; equal content makes equal bytes.

    Args:
        model: Flatbuffer for LiteRT.
        name: Name by which phases and phones know the encoder; embeddings of two encoders do not
            compare.
        int8: Whether the weights are 8-bit integers.
        mean: Mean of each of the 128 coordinates over public sound; 7 decimals of it are kept.
        scale: Scale of each coordinate; 5 decimals of it are kept.
        trained: Record of how the encoder was trained.
        credits_: Credits for the sound that the encoder was trained on.
        start_centroids: Arrays (count, dimensions) of public points of the projection.
        spectrum: Spectrum that the network is given.
    """
    card = Card(
        format=FORMAT,
        name=name,
        dimensions=DIMENSIONS,
        sha256=hashlib.sha256(model).hexdigest(),
        length=len(model),
        quantization="int8" if int8 else "float32",
        features=spectrum.features,
        mean=tuple(round(float(each), 7) for each in mean),
        scale=tuple(round(float(each), 5) for each in scale),
        trained=trained,
        start_centroids=tuple(map(CentroidSet.of, start_centroids)),
    )
    return _packed(EncoderFile(model, card, credits_))


def with_start_centroids(
    file: EncoderFile, start_centroids: Iterable[NDArray[np.floating]]
) -> bytes:
    """Return the bytes of an encoder file with other start centroids.

    Args:
        file: Content of the file.
        start_centroids: Arrays (count, dimensions) of public points of the projection.
    """
    sets = tuple(map(CentroidSet.of, start_centroids))
    card = msgspec.structs.replace(file.card, start_centroids=sets)
    return _packed(EncoderFile(file.model, card, file.credits))


def _packed(content: EncoderFile) -> bytes:
    text = json.dumps(msgspec.to_builtins(content.card), indent=1)
    file = io.BytesIO()
    file.write(content.model)
    with zipfile.ZipFile(file, "a", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo(CARD, _EARLIEST), text)
        credits_ = zipfile.ZipInfo(CREDITS, _EARLIEST)  # lists of files: a tenth when compressed
        archive.writestr(credits_, content.credits, zipfile.ZIP_DEFLATED)
    return file.getvalue()


def _unpack(data: bytes) -> tuple[Card, str]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for name in (CARD, CREDITS):
                check_size(archive.getinfo(name).file_size)  # no more of an entry is unpacked
            card = msgspec.json.decode(archive.read(CARD), type=Card)
            return card, archive.read(CREDITS).decode()
    except (
        zipfile.BadZipFile,
        zlib.error,
        KeyError,
        EOFError,
        NotImplementedError,
        RuntimeError,
    ) as error:
        raise DamagedEncoderError(
            f"not an encoder file: it must be a LiteRT model with an archive of {CARD} and "
            f"{CREDITS} behind it ({error})"
        ) from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise DamagedEncoderError(f"the encoder file's {CARD} cannot be read: {error}") from error


def _check(card: Card) -> None:
    if card.format != FORMAT:
        raise DamagedEncoderError(
            f"the encoder file has format {card.format}; this version reads format {FORMAT}"
        )
    if not (0 < len(card.name) <= LARGEST_NAME and card.name.isprintable()) or card.length < 1:
        raise DamagedEncoderError(
            f"the card of the encoder must hold its length, and a name of 1 to {LARGEST_NAME} "
            "printable characters"
        )
    if card.features not in SPECTRA:
        computed = "' and '".join(SPECTRA)
        raise DamagedEncoderError(
            f"encoder '{card.name}' needs '{card.features}'; this version computes '{computed}'"
        )
    lengths = {card.dimensions, len(card.mean), len(card.scale)}
    numbers = np.array([*card.mean, *card.scale])
    if lengths != {DIMENSIONS} or not np.isfinite(numbers).all():
        raise DamagedEncoderError(
            f"the card of encoder '{card.name}' must have {DIMENSIONS} dimensions, and as many "
            "finite numbers in mean and scale"
        )
    wrong = flaw(card.start_centroids, DIMENSIONS)
    if wrong is not None:
        raise DamagedEncoderError(f"the card of encoder '{card.name}': {wrong}")
