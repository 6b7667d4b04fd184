"""Output of `earshot phone` for its user: lines as things happen, or one JSON object at the end."""

from __future__ import annotations

import json
import sys
from typing import Any

from earshot_client.commands import statement
from earshot_client.phone import Phone
from earshot_protocol.phases.acceptance import Limits


class Report:
    """Output of a phone: lines on standard output or, beside JSON, on standard error.

    Args:
        phone: Phone that the report is about.
        as_json: Whether a JSON object is all that goes to standard output.
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
        """Say how a phase ended, given in plain types."""
        self._ending = ending
        outcome = [str(value) for name, value in ending.items() if name not in ("type", "phase")]
        self.say(f"phase over: {ending['type']}: {', '.join(outcome)}")

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
        """Print every release that the phone ever made, beside its limits."""
        if self._as_json:
            self.finish()
            return
        print("\n".join(statement.lines(self._phone.ledger, limits, self._phone.today)))

    def _spent(self) -> dict[str, dict[str, float]]:
        return {
            unit.value: {"epsilon": cost.epsilon, "delta": cost.delta}
            for unit, cost in self._phone.ledger.spent().items()
        }
