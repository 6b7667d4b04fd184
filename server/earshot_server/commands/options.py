"""What every operator's command asks for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Server = Annotated[str, typer.Option(envvar="EARSHOT_SERVER", help="URL of the server.")]
Data = Annotated[
    Path,
    typer.Option(
        help="The server's data folder, where the operator's token is; or set "
        "EARSHOT_OPERATOR_TOKEN."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]

DEFAULT_SERVER = "http://127.0.0.1:8000"
DEFAULT_DATA = Path("earshot-data")
