"""Output of `earshot phone` for its user: lines as things happen, or one JSON object at the end."""

from __future__ import annotations

import json
import sys
from typing import Any

from earshot_client.commands import statement
from earshot_client.phases.centroids import UNNAMED
from earshot_client.phone import Phone
from earshot_protocol.phases.acceptance import Limits


class Report:
    """Output of a phone: lines on standard output or, beside JSON, on standard error.

    Args:
        phone: Phone that the report is about.
        as_json: Whether standard output gets one JSON object and nothing else.
    """

    def __init__(self, phone: Phone, as_json: bool) -> None:
        self._phone = phone
        self._as_json = as_json
        self._ending: dict[str, Any] | None = None
        self._last = ""

    def say(self, line: str) -> None:
        """Print one line, unless it is the same as the last."""
        if line != self._last:
            print(line, file=sys.stderr if self._as_json else sys.stdout, flush=True)
        self._last = line

    def end(self, ending: dict[str, Any]) -> None:
        """Print how a phase ended, given in plain types."""
        self._ending = ending
        self.say(f"phase over: {ending['type']}: {_outcome(ending)}")

    def finish(self) -> None:
        """Print the JSON object, if one is wanted."""
        if self._as_json:
            kept = self._phone.recordings()
            summary = {
                "recordings": len(kept),
                "labelled": sum(recording.labelled for recording in kept),
                "ending": self._ending,
                "ledger": self._phone.ledger.export(),
                "spent": self._spent(),
            }
            print(json.dumps(summary, ensure_ascii=False), flush=True)

    def ledger(self, limits: Limits) -> None:
        """Print every release of the phone, and its budgets."""
        if self._as_json:
            self.finish()
            return
        print("\n".join(statement.lines(self._phone.ledger, limits, self._phone.today)))

    def _spent(self) -> dict[str, dict[str, float]]:
        return {
            unit.value: {"epsilon": cost.epsilon, "delta": cost.delta}
            for unit, cost in self._phone.ledger.spent().items()
        }


def _outcome(ending: dict[str, Any]) -> str:
    """Return a sentence on a phase's outcome, even if nothing stands clear of the noise."""
    if "reason" in ending:
        return str(ending["reason"])
    if "environments" in ending:
        names = [name for name in ending["environments"] if name != UNNAMED]
        found, rest = dict.fromkeys(names), len(ending["environments"]) - len(names)
        others = f"places without a name that stands clear of the noise: {rest}"
    elif "answers" in ending:
        answers = enumerate(ending["answers"])
        clear = {row: name for row, name in answers if name and row not in ending["noise"]}
        found = {f"sample {row + 1}: {name}": None for row, name in clear.items()}
        rest = len(ending["answers"]) - len(clear)
        others = f"samples without a label that stands clear of the noise: {rest}"
    elif "contacts" in ending:
        counts = ending["contacts"].items()
        noise = ending["noise"]
        found = {f"{name}: {count}": None for name, count in counts if name not in noise}
        rest, others = len(noise), f"may be noise: {', '.join(noise)}"
    else:
        return "published"
    if not found:
        return "nothing stands clear of the noise, so there is nothing to learn from it"
    return "; ".join([", ".join(found), *([others] if rest else [])])
