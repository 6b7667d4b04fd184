"""`earshot campaign`: plan weekly counts of contacts over a year."""

from __future__ import annotations

from cyclopts import App

from earshot_server.commands.campaign import planning

app = App(name="campaign", help="Plan a campaign: a year of weekly counts of contacts.")

app.command(planning.plan)
