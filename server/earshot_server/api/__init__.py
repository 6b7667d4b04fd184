"""HTTP API for phones, the public and operators, over a store that other processes advance."""
