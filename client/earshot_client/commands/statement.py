"""A phone's ledger for its user to read: a table, or plain values for other programs."""

from __future__ import annotations

import math
from datetime import date
from typing import Any

import msgspec

from earshot_protocol.phases.acceptance import Limits
from earshot_protocol.phases.learning import CLUSTER
from earshot_protocol.privacy.budgets import Span, Standing
from earshot_protocol.privacy.ledger import Ledger
from earshot_protocol.privacy.local_mechanisms import COUNTED_RECORDINGS
from earshot_protocol.privacy.mechanisms import LEDGER_UNITS

_SPANS = {Span.YEAR: "this year (366 days)", Span.LIFE: "ever"}
_COUNTED = (
    f"Per phone, clustering and selection count at least {COUNTED_RECORDINGS} recordings, whatever "
    "the phone holds,",
    "so that no later refusal reveals how many those are. The server's figure counts the number of "
    "the phase.",
)
_HEADS = ("day (UTC)", "phase", "what was released", "how", "per recording", "per phone")


def lines(ledger: Ledger, limits: Limits, today: date) -> list[str]:
    """Return a table of all releases, and the phone's standing with its budgets."""
    rows = _rows(ledger)
    if not rows:
        return ["Nothing has been released.", "", *_standing(limits.standing(ledger, today))]
    return [
        *_aligned([_HEADS, *rows]),
        "",
        *_standing(limits.standing(ledger, today)),
        "",
        "ε and δ bound how much the releases reveal about a single recording, or about everything",
        "that the phone contributed: an ε below 1 allows little, one above 10 almost everything.",
        "Totals are the joint cost of all releases. Each ε holds at the δ beside it. At a larger δ",
        "the same releases have a smaller ε, so a total may be smaller than one of its parts.",
        *(_COUNTED if any(entry["step"] == CLUSTER for entry in ledger.export()) else ()),
    ]


def plain(ledger: Ledger, limits: Limits, today: date) -> dict[str, Any]:
    """Return the statement in plain types; infinite values and missing limits are null."""
    values = {
        "entries": ledger.export(),
        "standing": [
            {
                "span": each.span.value,
                "unit": each.unit.value,
                "epsilon": each.epsilon,
                "delta": each.delta,
                "largest_epsilon": each.largest_epsilon,
                "left": each.left,
            }
            for each in limits.standing(ledger, today)
        ],
    }
    finite: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(values))
    return finite


def _rows(ledger: Ledger) -> list[tuple[str, ...]]:
    """Return a row for each release, with its costs in both units."""
    costs: dict[tuple[str, str], dict[str, str]] = {}
    about: dict[tuple[str, str], tuple[str, ...]] = {}
    for entry in ledger.export():
        release = entry["phase"], entry["step"]
        about[release] = (
            entry["day"],
            entry["phase"][:8],
            entry["step"],
            entry["mechanism"],
        )
        cost = f"ε {_number(entry['epsilon'])}, δ {_number(entry['delta'])}"
        costs.setdefault(release, {})[entry["unit"]] = cost
    return [
        (*about[release], *(by_unit.get(unit.value, "–") for unit in LEDGER_UNITS))
        for release, by_unit in costs.items()
    ]


def _standing(standing: tuple[Standing, ...]) -> list[str]:
    heads = ("altogether", "spent", "limit", "left")
    return _aligned(
        [
            heads,
            *(
                (
                    f"{_SPANS[each.span]}, per {each.unit}, at δ = {_number(each.delta)}",
                    f"ε {_number(each.epsilon)}",
                    f"ε {_number(each.largest_epsilon)}" if _is_limited(each) else "none",
                    f"ε {_number(each.left)}" if _is_limited(each) else "–",
                )
                for each in standing
            ),
        ]
    )


def _is_limited(standing: Standing) -> bool:
    return standing.largest_epsilon < math.inf


def _number(value: float) -> str:
    return "∞" if value == math.inf else f"{value:.3g}"


def _aligned(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
