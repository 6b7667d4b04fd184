"""Code of the caller's own within a simulation: what it raised or returned, named."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


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


def class_name(own: object) -> str:
    """Return the name of an object's class, with its module."""
    kind = type(own)
    return f"{kind.__module__}.{kind.__qualname__}"
