"""Which settings serve best: many phases at once, for the choices that are defaults."""
