"""A simulated phase of any kind: its settings, its run, what it found and its report.

`simulation.simulate` is the same for all: it opens the population, lets the engine's phones play
the phase against a coordinator, and puts everything into a `Run`. `settings` has what both routes
to environments are asked, and what every kind is (`PhaseSettings`); `environments` is what both
find, `secure_sum` and `local` what one of them finds. Another kind is a module of its own with its
settings and its findings (`PhaseFindings`), such as `labelling`. `report` makes the page, and
`kept` reads a run again. Read `settings` first, then `simulation`. Do not change the names or the
order of what `PhaseFindings.described` returns: files of earlier runs are repeated and compared.
"""
