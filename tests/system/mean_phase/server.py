"""What the server makes of a private mean."""

from __future__ import annotations

from earshot_protocol.summations import Opening
from earshot_server.phases.snapshot import Snapshot, Totals
from mean_phase.shared import AskNumber, Mean, MeanParameters


class MeanPhase(Snapshot, kw_only=True):
    parameters: MeanParameters
    total: int = 0

    def shape(self, part: str) -> tuple[int, ...]:
        return (1,)

    def sum_task(self, part: str, opening: Opening) -> AskNumber:
        return AskNumber(phase=self.phase, parameters=self.parameters, opening=opening)

    def take_total(self, part: str, total: Totals) -> None:
        self.total = int(total[0])

    def published(self) -> Mean:
        return Mean(
            phase=self.phase,
            total=self.total,
            mean=self.total / self.parameters.phones,
            privacy=self.parameters.plan().releases(),
        )
