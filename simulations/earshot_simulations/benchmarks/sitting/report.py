"""Report on a sitting, as Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from earshot_server.dashboard.refusals import short

_SERVER = {"driver": "driver", "web": "web processes", "postgresql": "PostgreSQL"}


def table(figures: Mapping[str, Any]) -> str:
    """Format figures of `benchmark` in Markdown: pages, steps, processes, names."""
    pages = figures["pages_that_took_part"]
    blocks = [
        f"{figures['pages']:,} pages beside {figures['phones']:,} phones in Python; {pages:,} "
        f"pages took part and {figures['pages_that_showed_the_result']:,} showed the result: "
        f"{figures['status']} "
        f"{figures['result_seconds']:.1f} seconds after the phase began, "
        f"{figures['gathering_seconds'] + figures['result_seconds']:.0f} after its gathering did."
        + (f" It failed: {figures['failure']}." if figures["failure"] else ""),
        "| step | seconds | answers |\n|---|---:|---:|\n"
        + f"| gathering | {figures['gathering_seconds']:.1f} | {figures['joined']:,} joined |\n"
        + "\n".join(
            f"| {step} | {seconds:.1f} | {figures['answered'].get(step, '–')} |"
            for step, seconds in figures["step_seconds"].items()
        ),
        "| processes | CPU, s | memory, MB |\n|---|---:|---:|\n"
        + f"| {figures['browser_processes']} of browsers, opening pages | "
        f"{figures['browser_opening_cpu_seconds']:,.0f} | {figures['browser_memory_mb']:,.0f} |\n"
        f"| the same, from then to the result | {figures['browser_sitting_cpu_seconds']:,.0f} | "
        "– |\n"
        + "\n".join(
            f"| {name} | {figures[f'{kind}_cpu_seconds']:,.0f} | "
            f"{figures[f'{kind}_peak_memory_mb']:,.0f} |"
            for kind, name in _SERVER.items()
        ),
        f"At most {figures['reports_per_second']:.1f} reports per second.",
        _named(figures),
        *_failures(figures),
        f"{figures['machine']}.",
    ]
    return "\n\n".join(blocks)


def _named(figures: Mapping[str, Any]) -> str:
    """Describe the names, and the part of noise in missing ones."""
    right, wrong, places = figures["right"], figures["wrong"], figures["places"]
    said = (
        f"Named: {', '.join(figures['named']) or 'nothing'}; heard were {', '.join(places)}: "
        f"{len(right)} of {len(places)} are right"
        + (f", {', '.join(wrong)} wrong" if wrong else "")
        + "."
    )
    if len(right) < len(places):
        said += (
            " The noise that protects each phone hides some of so few: missing names say nothing "
            "about the places."
        )
    return f"{said} The forecast was: {figures['verdict']}."


def _failures(figures: Mapping[str, Any]) -> list[str]:
    failed, refused = figures["pages_that_failed"], figures["refusals"]
    first = f"{len(failed)} pages failed, the first ones: {'; '.join(failed[:3])}."
    return [
        *([first] if failed else []),
        *(f"{count} phones refused: {short(rule)}." for rule, count in refused.items()),
        *(f"The server complained: {line}." for line in figures["server_errors"]),
    ]
