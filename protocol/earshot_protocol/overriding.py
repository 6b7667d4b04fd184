"""`typing.override` (Python 3.12): the method is documented where it is declared."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if sys.version_info >= (3, 12):
    from typing import override as override
elif TYPE_CHECKING:
    from typing_extensions import override as override
else:

    def override(method):
        """Return the method unchanged; type checkers verify that it overrides another."""
        return method
