"""A crowd that takes processes with it; a module, so that other processes find it."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path

from earshot_protocol.wire import Answer
from earshot_simulations.adversary.attack import Attacks


@dataclass(frozen=True, kw_only=True)
class Deadly(Attacks):
    """No attack: one phone whose process is killed when it has made a certain answer.

    That is the worst moment: keys and shares are drawn, and neither state nor answer is out.

    Attributes:
        folder: marks each death with a file.
        phone: which.
        answer: name of the type of the answer.
        times: so many processes die, then the phone answers.
        spared: a process that does not die.
    """

    folder: Path
    phone: int
    answer: str
    times: int = 1
    spared: int

    def sent(self, phone: int, answer: Answer) -> bytes:
        if (phone, type(answer).__name__) == (self.phone, self.answer):
            self._die()
        return super().sent(phone, answer)

    def _die(self) -> None:
        if os.getpid() == self.spared:
            return
        for death in range(self.times):
            try:
                (self.folder / f"death-{death}").touch(exist_ok=False)
            except FileExistsError:
                continue
            os.kill(os.getpid(), signal.SIGKILL)
