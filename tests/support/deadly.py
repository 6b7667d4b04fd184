"""A crowd among which a process is killed, once; a module, so that other processes find it."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from earshot_simulations.populations import Blobs, Recordings


class Deadly(Blobs):
    """Blobs, of which one phone takes the process with it that first asks what it heard.

    `times` says how often, each marked by a file in `folder`; `alone` is a process that is spared.
    """

    folder: Path
    phone: int
    times: int
    alone = 0

    def recordings(self, phone: int) -> Recordings:
        if phone == self.phone and os.getpid() != self.alone:
            for death in range(self.times):
                try:
                    (self.folder / f"death-{death}-of-{phone}").touch(exist_ok=False)
                except FileExistsError:
                    continue
                os.kill(os.getpid(), signal.SIGKILL)
        return super().recordings(phone)


def deadly(population: Blobs, folder: Path, phone: int, times: int = 1) -> Deadly:
    """The same crowd, but deadly; this process is spared."""
    crowd = Deadly.__new__(Deadly)
    crowd.__dict__.update(population.__dict__)
    crowd.folder, crowd.phone, crowd.times, crowd.alone = folder, phone, times, os.getpid()
    return crowd
