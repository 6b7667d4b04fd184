"""`earshot phase`: start, watch and end phases."""

from __future__ import annotations

from cyclopts import App

from earshot_server.commands.phase import starting, watching

app = App(name="phase", help="Start, begin, list, show, stop and export phases.")

app.command(starting.start)
app.command(watching.begin)
app.command(watching.list_phases, name="list")
app.command(watching.show)
app.command(watching.cohorts)
app.command(watching.stop)
app.command(watching.export)
