"""The HTTP API: phones, the public and operators, over a store that others advance."""
