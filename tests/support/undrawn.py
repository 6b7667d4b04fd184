"""Reports without their pictures, which take most of the time to write one.

For tests that look at what stands around pictures, or at another file.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from earshot_simulations.reporting import drawing


def _blank(picture: drawing.Picture) -> str:
    del picture
    return "<svg/>"


@contextmanager
def undrawn() -> Iterator[None]:
    """Until the end of the block."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(drawing, "rendered", _blank)
        yield
