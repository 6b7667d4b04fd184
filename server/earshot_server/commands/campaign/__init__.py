"""`earshot campaign`: plan weekly counts of contacts over a year, and let a server run them."""

from __future__ import annotations

from cyclopts import App

from earshot_server.commands.campaign import planning, running

app = App(name="campaign", help="Plan and run campaigns: a year of weekly counts of contacts.")

app.command(planning.plan)
app.command(running.start)
app.command(running.list_campaigns, name="list")
app.command(running.show)
app.command(running.stop)
app.command(running.resume)
app.command(running.export)
