"""What a benchmark that cannot go on raises."""

from __future__ import annotations

from earshot_protocol.errors import LocalError


class BenchmarkError(LocalError):
    """What is measured does not start, or does not come to its end; says why."""
