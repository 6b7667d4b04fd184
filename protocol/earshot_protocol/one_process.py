"""Objects that must be used only in the process that made them.

Two processes that share an open SQLite file overwrite each other's rows unnoticed, and two that
share a TLS connection encrypt different requests with the same key stream.
"""

from __future__ import annotations

import os
from typing import Any, NoReturn, Self, SupportsIndex

from earshot_protocol.errors import LocalError
from earshot_protocol.overriding import override


class OtherProcessError(LocalError):
    """Use of an object in another process than its own, or a copy of it."""


class OneProcess:
    """Base of objects with an open file, a connection or a lock; not to be copied or pickled."""

    _process: int

    def __new__(cls, *_: Any, **__: Any) -> Self:
        """Record the process that makes the object."""
        made = super().__new__(cls)
        made._process = os.getpid()
        return made

    @property
    def is_at_home(self) -> bool:
        """Whether this is the process that made the object."""
        return os.getpid() == self._process

    def check_process(self) -> None:
        """Check that the object was not made before a fork; call this before taking any lock.

        Raises:
            OtherProcessError: Another process made it.
        """
        if not self.is_at_home:
            raise OtherProcessError(
                f"this {type(self).__name__} belongs to process {self._process}, and a fork has "
                f"carried it into process {os.getpid()}: make another one after the fork"
            )

    @override
    def __reduce_ex__(self, _: SupportsIndex) -> NoReturn:
        raise OtherProcessError(
            f"a {type(self).__name__} cannot be copied or pickled: make another one where it is "
            "needed"
        )
