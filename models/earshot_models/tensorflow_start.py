"""Starting TensorFlow without its log output about devices and instructions.

The variable `TF_CPP_MIN_LOG_LEVEL` does not affect lines logged while its libraries load, so these
are filtered from standard error. Errors pass, also when TensorFlow aborts the process. If the user
has set the variable, nothing is filtered.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import IO, cast

from earshot_protocol.overriding import override

_LEVEL, _QUIETEST = "TF_CPP_MIN_LOG_LEVEL", "3"
"""TensorFlow's log-level variable, and the value for fatal errors alone; recoverable problems are
Python exceptions."""

_FILTER = r"""
import re, sys
for line in sys.stdin.buffer:
    if not re.match(rb"[IW]\d{4} |WARNING: All log messages before absl::InitializeLog", line):
        sys.stderr.buffer.write(line)
        sys.stderr.buffer.flush()
"""
"""Filter process, which survives if TensorFlow aborts this one."""


def start_quietly() -> None:
    """Silence later imports of TensorFlow, unless the user has set the log level."""
    if os.environ.setdefault(_LEVEL, _QUIETEST) == _QUIETEST and "tensorflow" not in sys.modules:
        sys.meta_path.insert(0, _TensorFlowFinder())


class _TensorFlowFinder(MetaPathFinder):
    """Import hook that loads TensorFlow without its log output."""

    @override
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != "tensorflow":
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def quietly(module: ModuleType) -> None:
                with _without_chatter():
                    load(module)

            spec.loader.exec_module = quietly  # type: ignore[method-assign]
        return spec


@contextlib.contextmanager
def _without_chatter() -> Iterator[None]:
    """Filter C++ log lines below error level from the standard error descriptor."""
    sys.stderr.flush()
    terminal = os.dup(2)
    try:
        filtering = [sys.executable, "-I", "-S", "-c", _FILTER]
        passing = subprocess.Popen(filtering, stdin=subprocess.PIPE, stderr=terminal)  # noqa: S603
        with passing as process:
            os.dup2(cast(IO[bytes], process.stdin).fileno(), 2)
            try:
                yield
            finally:
                sys.stderr.flush()
                os.dup2(terminal, 2)
    finally:
        os.close(terminal)
