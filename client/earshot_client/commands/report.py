"""What the user of `earshot phone` sees: lines as things happen, or one JSON object at the end."""

from __future__ import annotations

import json
import sys
from typing import Any

from earshot_client.phases.kinds import kind_ending
from earshot_client.phone import Phone
from earshot_client.store.interface import Store
from earshot_protocol.messages import Failed
from earshot_protocol.wire import Ending


class Report:
    """Lines go to standard output, or, beside JSON, to standard error.

    Args:
        phone: whose it is.
        store: the phone's.
        as_json: whether a JSON object is all that goes to standard output.
    """

    def __init__(self, phone: Phone, store: Store, as_json: bool) -> None:
        self._phone = phone
        self._store = store
        self._as_json = as_json
        self._ending: Ending | None = None
        self._last = ""

    def say(self, line: str) -> None:
        """One line, unless it is the same as the last."""
        if line != self._last:
            print(line, file=sys.stderr if self._as_json else sys.stdout, flush=True)
        self._last = line

    def end(self, ending: Ending) -> None:
        """How a phase ended."""
        self._ending = ending
        kind, _, outcome = _described(ending).values()
        self.say(f"phase over: {kind}: {outcome}")

    def finish(self) -> None:
        """The JSON object, if one is wanted."""
        if self._as_json:
            choices = self._store.recordings()[1]
            summary = {
                "recordings": len(choices),
                "labelled": sum(choice is not None for choice in choices),
                "ending": None if self._ending is None else _described(self._ending),
                "ledger": self._phone.ledger.export(),
                "spent": self._spent(),
            }
            print(json.dumps(summary, ensure_ascii=False), flush=True)

    def ledger(self) -> None:
        """Every release that the phone ever made."""
        if self._as_json:
            self.finish()
            return
        for entry in self._phone.ledger.export():
            print(
                f"{entry['number']:>4}  {entry['phase']}  {entry['step']:<14}  "
                f"{entry['mechanism']:<46}  per {entry['unit']:<9}  "
                f"ε = {entry['epsilon']:<8.4g}  δ = {entry['delta']:.3g}"
            )
        for unit, cost in self._spent().items():
            print(f"all together, per {unit}: ε = {cost['epsilon']:.4g}, δ = {cost['delta']:.3g}")

    def _spent(self) -> dict[str, dict[str, float]]:
        return {
            unit.value: {"epsilon": cost.epsilon, "delta": cost.delta}
            for unit, cost in self._phone.ledger.spent().items()
        }


def _described(ending: Ending) -> dict[str, Any]:
    described = {"type": str(ending.__struct_config__.tag), "phase": ending.phase.hex()}
    if isinstance(ending, Failed):
        return described | {"reason": ending.reason}
    kind = kind_ending(ending)
    return described if kind is None else described | kind.describe(ending)
