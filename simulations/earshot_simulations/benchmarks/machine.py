"""Description of the machine of a measurement."""

from __future__ import annotations

import os
import platform
from pathlib import Path

_GIB = 2**30


def machine() -> str:
    """Describe the processor, the usable cores, the memory and the system, in one line."""
    import psutil

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    memory = psutil.virtual_memory().total / _GIB
    system = f"{platform.system()} {platform.machine()}"
    return f"{_processor()}, {cores} cores, {memory:.0f} GiB, {system}"


def _processor() -> str:
    cpus = Path("/proc/cpuinfo")
    if cpus.exists():
        for line in cpus.read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or "unknown processor"
