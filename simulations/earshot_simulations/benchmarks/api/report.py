"""Report on a phase over HTTP, as Markdown tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_KINDS = {"enrol": "enrol", "task": "ask for a task", "answer": "answer"}
_PROCESSES = {
    "driver": "driver",
    "web": "web processes",
    "postgresql": "PostgreSQL",
    "phones": "all phones",
}


def table(figures: Mapping[str, Any]) -> str:
    """Format figures of `benchmark` in Markdown: the phase, its requests, processes and machine."""
    steps = f"steps of {figures['step_seconds']:g} seconds"
    of_cores = f"{100 * figures['phones_cpu_share']:.0f} %"
    late = " / ".join(f"{figures[f'phones_late_p{p}_ms'] / 1e3:.1f}" for p in (50, 95, 99))
    blocks = [
        f"{figures['phones']:,} phones, of which {figures['vanishing']:,} vanish, {steps}: "
        f"{figures['status']} after {figures['seconds'] / 60:.1f} minutes, "
        f"{figures['answered_last']:,} phones answered to the end."
        + (f" It failed: {figures['failure']}." if figures["failure"] else ""),
        "| requests | number | p50, ms | p95, ms | p99, ms |\n|---|---:|---:|---:|---:|\n"
        + "\n".join(
            f"| {name} | {figures[f'{kind}_requests']:,} | "
            + " | ".join(f"{figures[f'{kind}_p{p}_ms']:.0f}" for p in (50, 95, 99))
            + " |"
            for kind, name in _KINDS.items()
            if figures[f"{kind}_requests"]
        ),
        "| processes | CPU, s | peak memory, MB |\n|---|---:|---:|\n"
        + "\n".join(
            f"| {name} | {figures[f'{kind}_cpu_seconds']:,.0f} | "
            f"{figures[f'{kind}_peak_memory_mb'] * 2**20 / 1e6:,.0f} |"
            for kind, name in _PROCESSES.items()
        ),
        f"{figures['requests_per_second']:.0f} requests per second; the phones' processes, "
        f"cryptography included, took {of_cores} of the machine. Turns began {late} seconds late "
        "(p50 / p95 / p99). "
        f"A request that does nothing, alone: {figures['floor_request_p95_ms']:.1f} ms (p95); a "
        f"durable commit of 4 KiB: {figures['floor_commit_p95_ms']:.1f} ms. Answers were "
        f"{figures['answers_bytes'] / 1e6:,.0f} MB, tasks {figures['tasks_bytes'] / 1e6:,.0f} MB; "
        f"the database grew by {figures['database_growth_bytes'] / 1e6:,.0f} MB.",
        _errors(figures["errors"]),
        f"{figures['machine']}.",
    ]
    return "\n\n".join(blocks)


def _errors(errors: Mapping[str, int]) -> str:
    if not errors:
        return "No request failed."
    return "Errors: " + "; ".join(f"{count:,} × {error}" for error, count in errors.items())
