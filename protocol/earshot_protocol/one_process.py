"""Objects that live in one process, because what they hold must have one user.

Two processes that share an open SQLite file overwrite each other's rows unnoticed, and two that
share a TLS connection encrypt different requests with the same key stream.
"""

from __future__ import annotations

import os
from typing import Any, NoReturn, Self, SupportsIndex

from earshot_protocol.errors import LocalError
from earshot_protocol.overriding import override


class OtherProcessError(LocalError):
    """An object of one process that is used in another one, or copied."""


class OneProcess:
    """Base of what holds an open file, a connection or a lock; it is neither copied nor pickled."""

    _process: int

    def __new__(cls, *_: Any, **__: Any) -> Self:
        """Note which process makes the object."""
        made = super().__new__(cls)
        made._process = os.getpid()
        return made

    @property
    def is_at_home(self) -> bool:
        """Whether this is the process that made the object."""
        return os.getpid() == self._process

    def check_process(self) -> None:
        """Check that no fork has carried the object here; to be called before any lock is taken.

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
