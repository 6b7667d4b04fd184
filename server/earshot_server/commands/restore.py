"""`earshot restore`."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from earshot_server.dashboard.wording import counted
from earshot_server.processes.settings import Serving

app = App()


@app.default
def restore(
    backup: Path,
    /,
    *,
    data: Path,
    database: Annotated[str | None, Parameter(env_var="EARSHOT_DATABASE")] = None,
    port: int | None = None,
) -> None:
    """Restore a server from a backup; phases that were under way in it end.

    Args:
        backup: File that `earshot backup` wrote.
        data: Folder of the new server, empty or new.
        database: URL of an empty PostgreSQL, as its owner; without it, one is made in the folder.
        port: Port at which the new server listens; by default the old server's.
    """
    from earshot_server.backups.restoring import restore as make_anew

    replace(Serving(), data=data, port=port).check()
    ended = make_anew(backup, data, database, port)
    if ended:
        print(
            f"{counted(ended, 'phase')} under way in the backup ended, since phones may have "
            "answered after it: start new ones"
        )
    print("operators and tokens are those of the backup: repeat what was rotated or removed since")
    print(f"to serve it: {shlex.join(['earshot', 'serve', '--data', str(data)])}")
