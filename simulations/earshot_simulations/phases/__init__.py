"""A simulated phase of any kind: its settings, its run, its findings and its report.

`simulation.simulate` is the same for all: it opens the population, runs the phase between the
engine's phones and a coordinator, and returns a `Run`. `settings` has the settings of both routes
to environments, and the interface of every kind (`PhaseSettings`); `environments` has the findings
of both routes, `secure_sum` and `local` those of one. Any other kind is a module with its settings
and findings (`PhaseFindings`), such as `labelling`. `report` renders the page, and `kept` reads
saved runs. Read `settings` first, then `simulation`. Do not change the names or the order of the
entries of `PhaseFindings.described`: files of earlier runs are repeated and compared.
"""
