"""The operators' dashboard: read-only pages, drawn on the server, that load nothing from afar."""
