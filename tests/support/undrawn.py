"""Reports without their pictures, which take most of the time to write one.

For tests that look at what stands around pictures, or at another file.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from earshot_simulations.reporting import drawing


def _blank(
    draw: object, height: float, alt: str, *remarks: str, square: bool = False
) -> drawing.Picture:
    del draw, height, square
    return drawing.Picture("<svg/>", alt, " ".join(filter(None, remarks)))


@contextmanager
def undrawn() -> Iterator[None]:
    """Until the end of the block."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(drawing, "picture", _blank)
        yield
