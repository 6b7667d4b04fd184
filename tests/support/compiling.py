"""JAX compiles faster than it runs: tests run little of what they compile."""

from __future__ import annotations

import jax

jax.config.update("jax_disable_most_optimizations", True)
