"""Options that several commands have."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from earshot_server.operator_client import OperatorClient, read_token
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
        server: URL of the server.
        data: The server's data folder, where the operator's token is; or set
            EARSHOT_OPERATOR_TOKEN.
    """

    server: Annotated[str, Parameter(env_var="EARSHOT_SERVER")] = "http://127.0.0.1:8000"
    data: Path = Serving.data

    def operator(self) -> OperatorClient:
        """Return the operator's side of the connection."""
        return OperatorClient(self.server, read_token(self.data))


DEFAULT = OperatorConnection()
