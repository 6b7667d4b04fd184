"""MNIST: handwritten digits in four IDX files (LeCun et al. 1998)."""

from __future__ import annotations

import gzip
import math
from pathlib import Path

import numpy as np

from earshot_models.datasets.dataset import DatasetError, check_folder, existing
from earshot_studies.muehl.table import PublishedSplit, Table

LAYOUT = "MNIST: {train,t10k}-{images-idx3,labels-idx1}-ubyte, packed by gzip or not"
CLASSES = tuple("0123456789")

_BYTES = 0x08
"""Type code of an IDX file of unsigned bytes."""


def load(folder: Path) -> PublishedSplit:
    """Read both parts: images float32 (images, height, width, 1) in [0, 1], and their digits.

    Raises:
        DatasetError: A file is missing, is not an IDX file of bytes, or its length differs from
            its header or its companion.
    """
    check_folder(folder, LAYOUT)
    return PublishedSplit(train=_part(folder, "train"), test=_part(folder, "t10k"))


def _part(folder: Path, name: str) -> Table:
    images_file = existing(folder, *_names(f"{name}-images-idx3-ubyte"))
    labels_file = existing(folder, *_names(f"{name}-labels-idx1-ubyte"))
    images, labels = _read(images_file, 3), _read(labels_file, 1)
    if len(images) != len(labels):
        raise DatasetError(f"{images_file} has {len(images)} images for {len(labels)} labels")
    if len(labels) and labels.max() >= len(CLASSES):
        raise DatasetError(f"{labels_file} has the label {labels.max()}; digits are 0 to 9")
    rows = (images[..., None] / np.float32(255)).astype(np.float32)
    return Table(rows, labels.astype(np.int64), CLASSES)


def _names(name: str) -> tuple[str, str]:
    return f"{name}.gz", name


def _read(path: Path, dimensions: int) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    try:
        content = path.read_bytes()
        if path.suffix == ".gz":
            content = gzip.decompress(content)
    except (OSError, EOFError) as error:
        raise DatasetError(f"{path} cannot be read: {error}") from error
    start = 4 + 4 * dimensions
    if len(content) < start or content[:4] != bytes([0, 0, _BYTES, dimensions]):
        raise DatasetError(f"{path} is not an IDX file of bytes in {dimensions} dimensions")
    shape = tuple(int(size) for size in np.frombuffer(content, ">u4", dimensions, 4))
    if len(content) != start + math.prod(shape):
        raise DatasetError(f"{path} does not have the length that its header gives: {shape}")
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)
