"""Choice of the field arithmetic: the fastest one available."""

from __future__ import annotations

import functools
import importlib.util

from earshot_protocol.prio3.field import Arithmetic
from earshot_protocol.prio3.limbs import LimbArithmetic


@functools.cache
def fastest() -> Arithmetic:
    """Return the compiled arithmetic if numba is installed, otherwise NumPy's."""
    if importlib.util.find_spec("numba") is None:  # it supports new interpreters late
        return LimbArithmetic()
    from earshot_server.proofs.kernels import CompiledArithmetic  # takes seconds to load

    return CompiledArithmetic()
