"""Options that several commands share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from earshot_protocol.errors import InvalidInputError
from earshot_server.operator_client import OperatorClient, read_token
from earshot_server.processes.address import remembered
from earshot_server.processes.settings import Serving

AsJson = Annotated[bool, Parameter(name="--json", help="Print one JSON object.")]
Labels = Annotated[
    str | None,
    Parameter(help="Classes of environments, separated by commas; by default everyday ones."),
]


@Parameter(name="*")
@dataclass(frozen=True)
class OperatorConnection:
    """Connection of an operator to a server.

    Attributes:
        server: URL of the server; by default the address at which the server of --data listens.
        data: The server's data folder, which holds the operator's token; or set
            EARSHOT_OPERATOR_TOKEN.
    """

    server: Annotated[str | None, Parameter(env_var="EARSHOT_SERVER")] = None
    data: Path = Serving.data

    @property
    def address(self) -> str:
        """URL of the server."""
        return self.server or remembered(self.data).reachable.url

    def operator(self) -> OperatorClient:
        """Return a client with the operator's token."""
        return OperatorClient(self.address, read_token(self.data))


DEFAULT = OperatorConnection()


def refuse_existing(out: Path | None, overwrite: bool) -> None:
    """Check that a file may be written: it is new, or `--overwrite` was given.

    Raises:
        InvalidInputError: The file exists, and `overwrite` is false.
    """
    if out is not None and out.exists() and not overwrite:
        raise InvalidInputError(
            f"{out} exists: name another file, or add --overwrite, which replaces it"
        )
