"""The operators' dashboard: read-only pages, drawn on the server, that load nothing from afar."""

from __future__ import annotations

from earshot_server.dashboard.pages import blueprint

__all__ = ["blueprint"]
