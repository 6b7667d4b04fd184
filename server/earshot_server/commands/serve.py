"""`earshot serve`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from earshot_server.processes.settings import Serving

app = typer.Typer(add_completion=False)

_DEFAULT = Serving(Path("earshot-data"))


@app.callback(invoke_without_command=True)
def serve(
    context: typer.Context,
    data: Annotated[
        Path,
        typer.Option(help="Folder of the credentials, and of the embedded database."),
    ] = _DEFAULT.data,
    database: Annotated[
        str | None,
        typer.Option(
            envvar="EARSHOT_DATABASE",
            help="URL of a PostgreSQL (postgresql://…); without it, one is run in the data folder.",
        ),
    ] = None,
    web_database: Annotated[
        str | None,
        typer.Option(
            envvar="EARSHOT_WEB_DATABASE",
            help="The same for the web processes, with a role of their own.",
        ),
    ] = None,
    driver_database: Annotated[
        str | None,
        typer.Option(
            envvar="EARSHOT_DRIVER_DATABASE",
            help="The same for the driver, with a role of its own.",
        ),
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen at; not this machine's own: with --proxies only.")
    ] = _DEFAULT.host,
    port: Annotated[int, typer.Option(help="Port to listen at; 0: any.")] = _DEFAULT.port,
    workers: Annotated[int, typer.Option(help="Web processes.")] = _DEFAULT.workers,
    threads: Annotated[int, typer.Option(help="Threads of each.")] = _DEFAULT.threads,
    pause: Annotated[
        float, typer.Option(help="Seconds between two looks at what is due.")
    ] = _DEFAULT.pause,
    keep_days: Annotated[
        float, typer.Option(help="Days that members and snapshots of ended phases stay.")
    ] = _DEFAULT.keep_days,
    requests_per_minute: Annotated[
        int, typer.Option(help="Of one phone, to each worker, at most.")
    ] = _DEFAULT.requests_per_minute,
    address_requests_per_minute: Annotated[
        int, typer.Option(help="Of one address, to each worker, at most.")
    ] = _DEFAULT.address_requests_per_minute,
    address_connections: Annotated[
        int, typer.Option(help="Of one address, to each worker, at most; not behind --proxies.")
    ] = _DEFAULT.address_connections,
    proxies: Annotated[
        int,
        typer.Option(help="Reverse proxies before the server, whose X-Forwarded-For is believed."),
    ] = _DEFAULT.proxies,
    log_level: Annotated[str, typer.Option(help="The least that is logged.")] = _DEFAULT.log_level,
    renew_credentials: Annotated[
        bool,
        typer.Option(
            "--renew-credentials",
            help="The data folder's credentials take the place of those the database knows.",
        ),
    ] = _DEFAULT.renew_credentials,
) -> None:
    """Coordinate phases for phones, until SIGTERM; `docs/operations.md` says the rest."""
    from earshot_server.credentials import TOKEN_FILE
    from earshot_server.processes import supervisor as serving

    # Options are named as what they set.
    settings = Serving(**context.params | {"data": data, "log_level": log_level.upper()})
    settings.check()

    def ready(address: str) -> None:
        typer.echo(f"Earshot serves at {address}")
        typer.echo(f"Dashboard: user operator, password in {data / TOKEN_FILE}")

    serving.serve(settings, ready)
