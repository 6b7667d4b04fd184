"""Code of the caller's own within a simulation: what it raised or returned, named."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray


class OwnCodeError(RuntimeError):
    """Code of the caller's own raised, or returned something that cannot be used.

    It is not an `EarshotError`, which phones and servers take for the other side's mistake: they
    would go on, or end the phase.
    """


@contextmanager
def own_code(where: str) -> Iterator[None]:
    """Name the place of an exception of the caller's own code.

    Args:
        where: Object and call, such as `population MyCrowd: recordings(3)`.

    Raises:
        OwnCodeError: The code within raised an exception, which is the cause.
    """
    try:
        yield
    except OwnCodeError:
        raise
    except Exception as error:
        raise OwnCodeError(f"{where} raised {type(error).__name__}: {error}") from error


def own_array(where: str, given: Any) -> NDArray[Any]:
    """Return what the caller's own code gave as an array.

    Args:
        where: Place of the array, for messages.
        given: Array, or what NumPy makes one of.

    Raises:
        OwnCodeError: It is none, such as a list of lists of different lengths; or it is masked,
            since what its mask hides would count.
    """
    if isinstance(given, np.ma.MaskedArray):
        raise OwnCodeError(f"{where} is a masked array: give one without the masked entries")
    try:
        return np.asarray(given)
    except Exception as error:
        raise OwnCodeError(f"{where} is not an array: {error}") from error


def class_name(own: object) -> str:
    """Return the name of an object's class, with its module."""
    kind = type(own)
    return f"{kind.__module__}.{kind.__qualname__}"
