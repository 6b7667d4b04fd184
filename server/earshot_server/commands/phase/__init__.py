"""`earshot phase`: a file for starting phases, one for watching and ending them."""

from __future__ import annotations

import typer

from earshot_server.commands.phase import starting, watching

app = typer.Typer(add_completion=False, no_args_is_help=True)


@app.callback()
def phase() -> None:
    """Start, list, show, stop and export phases."""


app.command("start")(starting.start)
app.command("list")(watching.list_phases)
app.command("show")(watching.show)
app.command("cohorts")(watching.cohorts)
app.command("stop")(watching.stop)
app.command("export")(watching.export)
