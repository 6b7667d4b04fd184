"""`earshot backup`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from earshot_server.commands.options import refuse_existing
from earshot_server.dashboard.wording import byte_size
from earshot_server.processes.settings import Serving

app = App()


@app.default
def backup(
    out: Path,
    /,
    *,
    data: Path = Serving.data,
    database: Annotated[str | None, Parameter(env_var="EARSHOT_DATABASE")] = None,
    overwrite: bool = False,
) -> None:
    """Back up a server to one file, whether or not it runs; `earshot restore` restores it.

    Args:
        out: File to write, readable only by its owner. It holds the server's secrets: guard it
            like the server itself.
        data: The server's data folder.
        database: URL of its PostgreSQL, as the owner; without it, the one in the data folder.
        overwrite: Replace the file if it exists.
    """
    from earshot_server.backups.backing_up import back_up

    refuse_existing(out, overwrite)
    back_up(out, data, database)
    print(f"{out}: {byte_size(out.stat().st_size)}; it holds the server's secrets, so guard it")
