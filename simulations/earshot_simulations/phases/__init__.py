"""A simulated phase of any kind: its settings, its run, what it found and its report.

`simulation.simulate` is the same for all: it opens the population, lets the engine's phones play
the phase against a coordinator, and puts everything into a `Run`. A kind is one module with its
settings (`PhaseSettings`), its findings (`PhaseFindings`) and how these are scored, written and
shown. A route to environments (`local`, `secure_sum`) is one, too; `environments` has what both
share. `report` makes the page, and `kept` reads a run again. Read `secure_sum` first, then
`simulation`. Do not change the names or the order of what `PhaseFindings.described` returns: files
of earlier runs are repeated and compared.
"""
