"""One JSON object per line on standard error.

What is logged: the time, who logs, a request's id, endpoint, status and duration, the phone's
number, the kind of a problem. Never logged: tokens, signatures, invitation codes, bodies,
addresses.
"""

from __future__ import annotations

import logging
import sys
from typing import TextIO

from pythonjsonlogger.json import JsonFormatter


def configure(level: str = "INFO", stream: TextIO | None = None) -> None:
    """Let every logger of this process write structured lines.

    Args:
        level: the least that is written, by its name in `logging`.
        stream: where to; standard error by default.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(
        JsonFormatter(
            ["levelname", "name", "message"],
            timestamp="time",
            rename_fields={"levelname": "level", "name": "logger"},
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
