"""Structured logs: one JSON object per line on standard error.

Logs contain the time, the logger, a request's id, endpoint, status and duration, the phone's
number, and the kind of a problem. They never contain tokens, signatures, invitation codes, bodies
or addresses of clients.
"""

from __future__ import annotations

import logging
import sys
from typing import TextIO

from pythonjsonlogger.json import JsonFormatter


def formatter() -> JsonFormatter:
    """Return the formatter of log records."""
    return JsonFormatter(
        ["levelname", "name", "message"],
        timestamp="time",
        rename_fields={"levelname": "level", "name": "logger"},
    )


def configure(level: str = "INFO", stream: TextIO | None = None) -> None:
    """Make every logger of this process write structured lines.

    Args:
        level: Lowest level that is written, by its name in `logging`.
        stream: Stream to write to; by default standard error.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(formatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
