"""Phones whose recordings are the vectors of a file `.npz`."""

from __future__ import annotations

import lzma
import sys
import zipfile
import zlib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earshot_protocol.errors import InvalidInputError
from earshot_protocol.geometry import Geometry
from earshot_protocol.phases.parameters import LARGEST_LABELS
from earshot_protocol.sound_reading import visible
from earshot_simulations.own_code import OwnCodeError
from earshot_simulations.populations import seeds
from earshot_simulations.populations.interface import Recordings
from earshot_simulations.populations.own import checked_points
from earshot_simulations.populations.population import HELD_OUT_PER_SCENE, UNLABELLED, Stream
from earshot_simulations.versions import file_digest

SUFFIX = ".npz"
_NEEDED, _MORE = ("vectors", "labels", "phone"), ("scenes", "geometry")
HELD_OUT_SHARE = 0.25
"""Share of the phones of a file that take no part; their recordings are held out."""
LARGEST_BYTES = 4 * 2**30
"""Most bytes of the arrays of a file, unpacked."""
_LARGEST_HEADER = 10_000
_DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    RuntimeError,
    NotImplementedError,
)

Arrays = Mapping[str, NDArray[Any]]


class PhonesInFile(NamedTuple):
    """Numbers of phones of a file of vectors.

    Attributes:
        in_file: Number of phones in the file.
        phones: Number of phones that take part; the others are held out.
    """

    in_file: int
    phones: int

    def __str__(self) -> str:
        rest = self.in_file - self.phones
        return f"has {self.in_file} phones, of which {self.phones} take part: {rest} are held out"


class Vectors:
    """A `Population` from a file of embedded recordings.

    A quarter of the phones, drawn by the seed, takes no part: their recordings of known scenes are
    the held-out ones, at most 200 of each scene. The others keep the order of the file.

    Attributes:
        encoder: Name of the encoder of the points, which the file does not have.
        name: Name of the file.
        key: SHA-256 of the file, hexadecimal.
        geometry: Geometry of the points.
        labels: Names of the labels.
        phones: Number of phones that take part.
        dimensions: Length of a point.
    """

    encoder = "vectors"

    def __init__(self, path: Path, seed: int) -> None:
        """Read the file.

        Args:
            path: Path of the file.
            seed: Seed by which phones are held out.

        Raises:
            InvalidInputError: There is no such file, or something in it cannot be used; the message
                says what, and what would be accepted.
        """
        arrays = _opened(path)
        self.key = file_digest(path)
        self.name = visible(path.name)
        self.geometry = Geometry(str(arrays.get("geometry", Geometry.SPHERICAL)))
        self.labels: tuple[str, ...] = tuple(arrays["names"].tolist())
        self.dimensions = arrays["vectors"].shape[1]
        numbers, counts = arrays["phone"], _counts(arrays)
        count, self.phones = counts
        aside = seeds.generator(seed, Stream.SPLIT).permutation(count)
        aside = np.sort(aside[: count - self.phones])
        is_aside = np.isin(numbers, aside)
        # Rows of one phone stand together, in the file's order.
        rows = np.flatnonzero(~is_aside)
        rows = rows[np.argsort(numbers[rows], kind="stable")]
        each = np.delete(np.bincount(numbers, minlength=count), aside)
        self._starts = np.cumsum([0, *each])
        every = Recordings(arrays["vectors"], arrays["labels"], arrays["scenes"])
        self._heard = every.rows(rows)
        self._others = every.rows(_some(every.scenes, is_aside, seed))
        if not len(self._others.points):
            raise InvalidInputError(
                f"{path}: none of the {len(aside)} phones held out by seed {seed} has a recording "
                "with a label, by which a result is judged; give more phones, or scenes"
            )

    def recordings(self, phone: int) -> Recordings:
        """Return the recordings of one phone."""
        own = slice(self._starts[phone], self._starts[phone + 1])
        return self._heard.rows(own)

    def held_out(self) -> Recordings:
        """Return recordings of the phones that take no part."""
        return self._others

    def __getstate__(self) -> dict[str, Any]:
        # Phones ask for nothing that no phone has heard.
        return {**self.__dict__, "_others": None}


def counts_of(path: Path) -> PhonesInFile:
    """Return the numbers of phones of a file.

    Raises:
        InvalidInputError: The file cannot be used, as for `Vectors`.
    """
    return _counts(_opened(path))


def _counts(arrays: Arrays) -> PhonesInFile:
    count = int(arrays["phone"].max()) + 1
    return PhonesInFile(count, count - max(1, int(HELD_OUT_SHARE * count)))


def is_vectors(data: str) -> bool:
    """Return whether data are a file of vectors, by its name."""
    return data.lower().endswith(SUFFIX)


def _some(scenes: NDArray[np.int16], is_aside: NDArray[np.bool_], seed: int) -> NDArray[np.int64]:
    """Return some rows of the phones aside, at most `HELD_OUT_PER_SCENE` of each known scene."""
    generator = seeds.generator(seed, Stream.HELD_OUT)
    chosen = [
        generator.permutation(np.flatnonzero(is_aside & (scenes == scene)))[:HELD_OUT_PER_SCENE]
        for scene in range(int(scenes.max()) + 1)
    ]
    return np.concatenate(chosen) if chosen else np.empty(0, np.int64)


def _opened(path: Path) -> Arrays:
    try:
        status = path.stat()
        return _read(path, status.st_size, status.st_mtime_ns)
    except OSError as error:
        raise InvalidInputError(f"{path}: cannot be read ({error.strerror or error})") from None


@lru_cache(maxsize=1)
def _read(path: Path, size: int, changed: int) -> Arrays:
    """Return the arrays of a file, checked, and `names`, those of the labels."""
    del size, changed  # by which a file is known as unchanged
    held = _arrays(path)
    vectors = held["vectors"]
    if vectors.ndim != 2 or not all(vectors.shape):
        raise InvalidInputError(
            f"{path}: vectors has shape {vectors.shape}: must be (recordings, dimensions), with at "
            "least one of each"
        )
    for name in ("labels", "phone", "scenes"):
        if name in held and held[name].shape != (len(vectors),):
            raise InvalidInputError(
                f"{path}: {name} has shape {held[name].shape}: must be ({len(vectors)},), an entry "
                "for each of the vectors"
            )
    geometry = str(held.get("geometry", Geometry.SPHERICAL))
    if geometry not in tuple(Geometry):
        raise InvalidInputError(
            f"{path}: geometry='{geometry[:20]}': must be {' or '.join(map(str, Geometry))}"
        )
    try:
        points = checked_points(f"{path}: vectors", vectors, vectors.shape[1], Geometry(geometry))
    except OwnCodeError as error:
        raise InvalidInputError(str(error)) from None
    phone = held["phone"]
    if phone.dtype.kind not in "iuU":
        raise InvalidInputError(
            f"{path}: phone is of type {phone.dtype}: must be whole numbers or names"
        )
    numbers = np.unique(phone, return_inverse=True)[1]
    names, labels, scenes = _labelled(path, held["labels"], held.get("scenes"))
    return {
        "vectors": points,
        "labels": labels,
        "scenes": scenes,
        "phone": numbers,
        "names": np.array(names),
        "geometry": np.array(geometry),
    }


def _labelled(
    path: Path, labels: NDArray[Any], scenes: NDArray[Any] | None
) -> tuple[tuple[str, ...], NDArray[np.int16], NDArray[np.int16]]:
    """Return the names of the labels, each recording's label, and its scene.

    Without scenes, labels are the truth, as far as they go.
    """
    both = {"labels": labels, "scenes": labels if scenes is None else scenes}
    if len({column.dtype.kind in "iu" for column in both.values()}) > 1:
        raise InvalidInputError(f"{path}: labels and scenes must be of one type")
    for name, column in both.items():
        if column.dtype.kind not in "iuU":
            raise InvalidInputError(
                f"{path}: {name} is of type {column.dtype}: must be whole numbers from 0 (-1 for "
                "none), or texts ('' for none)"
            )
    if labels.dtype.kind == "U":
        words = np.unique(np.concatenate([*both.values()]))
        words = words[words != ""]
        _check_count(path, len(words))
        for name, column in both.items():
            found = np.searchsorted(words, column).astype(np.int16)
            both[name] = np.where(column == "", UNLABELLED, found).astype(np.int16)
        return tuple(words.tolist()), both["labels"], both["scenes"]
    for name, column in both.items():
        if column.min() < UNLABELLED:
            raise InvalidInputError(
                f"{path}: {name} has an entry of {column.min()}: must be 0 or above, or -1 for none"
            )
    most = max(int(column.max()) for column in both.values())
    _check_count(path, most + 1)
    names = tuple(f"label {label}" for label in range(most + 1))
    return names, both["labels"].astype(np.int16), both["scenes"].astype(np.int16)


def _check_count(path: Path, labels: int) -> None:
    """Refuse a file without two labels, or with more than a phase can have."""
    if not 2 <= labels <= LARGEST_LABELS:
        raise InvalidInputError(
            f"{path}: has {labels} labels: must be 2 to {LARGEST_LABELS} (whole numbers count from "
            "0)"
        )


def _arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays of a file by name, and unpack none before its size is known."""
    try:
        with zipfile.ZipFile(path) as file:
            members = {each.filename.removesuffix(".npy"): each for each in file.infolist()}
            missing = [name for name in _NEEDED if name not in members]
            if missing:
                raise InvalidInputError(
                    f"{path}: has no {' and no '.join(missing)}; np.savez(file, vectors=…, "
                    "labels=…, phone=…) writes them"
                )
            wanted = [members[name] for name in (*_NEEDED, *_MORE) if name in members]
            size = sum(member.file_size for member in wanted)
            if size > LARGEST_BYTES:
                raise InvalidInputError(
                    f"{path}: unpacks to {size / 2**30:,.1f} GiB: must be at most "
                    f"{LARGEST_BYTES / 2**30:g}; keep fewer recordings or dimensions"
                )
            found = {}
            for member in wanted:
                name = member.filename.removesuffix(".npy")
                with file.open(member) as content:
                    found[name] = _array(f"{path}: {name}", content, member.file_size)
            return found
    except _DAMAGED as error:
        raise InvalidInputError(
            f"{path}: is not a file of np.savez, or is damaged ({error})"
        ) from None


def _array(where: str, content: IO[bytes], size: int) -> NDArray[Any]:
    """Read one array, after its header has told its size."""
    form: Any = np.lib.format
    wrong = f"{where} is not an array of numpy"
    try:
        version = form.read_magic(content)
        if version not in ((1, 0), (2, 0)):
            raise InvalidInputError(f"{wrong} (version {version})")
        header = form.read_array_header_1_0 if version == (1, 0) else form.read_array_header_2_0
        shape, fortran, dtype = header(content, max_header_size=_LARGEST_HEADER)
    except (InvalidInputError, OSError, *_DAMAGED):
        raise
    except Exception:  # numpy reads a header as Python, and raises whatever that raises
        raise InvalidInputError(f"{wrong}: its header cannot be read") from None
    if dtype.hasobject:
        raise InvalidInputError(
            f"{where} holds Python objects, which only a pickle can carry, and a pickle can run "
            "any program; save numbers or texts, such as np.array(labels, dtype=str)"
        )
    count = 1
    for length in shape:
        count *= int(length)
    fits = dtype.itemsize and count * dtype.itemsize <= size and dtype.kind != "V"
    if min(shape, default=0) < 0 or not fits:
        raise InvalidInputError(f"{where} is damaged: its header says {shape} of {dtype}")
    data = content.read(count * dtype.itemsize)
    if len(data) < count * dtype.itemsize:
        raise InvalidInputError(f"{where} is cut off")
    found = np.frombuffer(data, dtype)
    if dtype.kind == "U" and (found.view(f"{dtype.byteorder}u4") > sys.maxunicode).any():
        raise InvalidInputError(f"{where} is damaged: it has texts of no characters")
    try:
        return found.reshape(shape, order="F" if fortran else "C")
    except (ValueError, TypeError):
        raise InvalidInputError(f"{where} is damaged: its header says {shape}") from None
