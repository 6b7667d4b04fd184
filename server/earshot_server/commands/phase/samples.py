"""The samples of a labelling phase: from a file, or the unnamed environments of another phase."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from earshot_protocol.errors import InvalidInputError
from earshot_protocol.geometry import Geometry
from earshot_protocol.phases.discovery import Discovered
from earshot_protocol.phases.labelling import LARGEST_SAMPLES
from earshot_protocol.phases.named_centroids import NamedCentroids
from earshot_protocol.wire import LARGEST_DIMENSIONS, Ending, Matrix
from earshot_server.dashboard.prototypes import nameless

_LARGEST_FILE = 2**20 + 8 * LARGEST_SAMPLES * LARGEST_DIMENSIONS


class Samples(NamedTuple):
    """Samples to be labelled.

    Attributes:
        points: Embeddings of the samples, (samples, dimensions).
        encoder: Encoder of the embeddings; empty if unknown.
    """

    points: Matrix
    encoder: str = ""


def of_file(file: Path) -> Samples:
    """Return the samples of a NumPy file.

    Args:
        file: File `.npy` of one array (samples, dimensions) of real numbers.

    Raises:
        InvalidInputError: The file cannot be read, or does not contain such an array.
    """
    try:
        if file.stat().st_size > _LARGEST_FILE:
            raise InvalidInputError(f"--samples {file}: at most {_LARGEST_FILE} bytes are read")
        array = np.load(file, allow_pickle=False)
    except OSError as error:
        raise InvalidInputError(
            f"--samples {file}: cannot be read ({error.strerror or error}); name a .npy file"
        ) from error
    except (ValueError, EOFError) as error:
        raise InvalidInputError(
            f"--samples {file}: not a .npy file of numbers; write one with numpy.save"
        ) from error
    if not isinstance(array, np.ndarray) or array.ndim != 2 or array.dtype.kind not in "iuf":
        shape = getattr(array, "shape", None)
        raise InvalidInputError(
            f"--samples {file}: an array (samples, dimensions) of real numbers is needed, not "
            f"{getattr(array, 'dtype', type(array).__name__)} of shape {shape}"
        )
    samples, dimensions = array.shape
    if not (1 <= samples <= LARGEST_SAMPLES and 1 <= dimensions <= LARGEST_DIMENSIONS):
        raise InvalidInputError(
            f"--samples {file}: {samples} samples of {dimensions} dimensions; 1 to "
            f"{LARGEST_SAMPLES} of 1 to {LARGEST_DIMENSIONS} are taken"
        )
    unusable = int((~np.isfinite(array).all(axis=1)).sum())
    if unusable:
        raise InvalidInputError(
            f"--samples {file}: {unusable} of {samples} samples have a number that is not finite"
        )
    try:
        return Samples(Matrix.of(array))
    except InvalidInputError as error:
        raise InvalidInputError(f"--samples {file}: {error}") from error


def unnamed(phase: str, ending: Ending | None) -> Samples:
    """Return the environments that a phase found but could not name.

    Of a discovery phase these are the cells with sound that are near no prototype.

    Args:
        phase: Identifier of the phase, as the user gave it.
        ending: Ending of the phase.

    Raises:
        InvalidInputError: The phase found no environments, named all of them, or its geometry is
            not spherical.
    """
    if not isinstance(ending, NamedCentroids):
        raise InvalidInputError(f"--samples-of {phase}: this phase has published no environments")
    if ending.geometry is not Geometry.SPHERICAL:
        raise InvalidInputError(
            f"--samples-of {phase}: its geometry is {ending.geometry}, and samples need spherical"
        )
    if isinstance(ending, Discovered):
        cells, without = ending.cells, nameless(ending)
        if not without:
            raise InvalidInputError(
                f"--samples-of {phase}: every cell with sound is near the prototype of a label"
            )
        return Samples(Matrix.of(cells.array()[list(without)]), ending.encoder)
    unnamed = [row for row, name in enumerate(ending.names) if name is None]
    if not unnamed:
        raise InvalidInputError(
            f"--samples-of {phase}: all {len(ending.names)} environments have names"
        )
    return Samples(Matrix.of(ending.centroids.array()[unnamed]), ending.encoder)
