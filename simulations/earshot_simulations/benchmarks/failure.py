"""The error of a benchmark that cannot continue."""

from __future__ import annotations

from earshot_protocol.errors import LocalError


class BenchmarkError(LocalError):
    """The benchmarked system does not start or does not finish; the message states why."""
