"""The driver: `python -m support.mutation`, which `make mutants` runs; see `--help`."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from support.changed import Changes
from support.mutation.driver import PLACES, Mutation
from support.mutation.operators import NAMED

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__)
    parser.add_argument("--minutes", type=float, help="of judging, after which no mutant begins")
    parser.add_argument("--changed", action="store_true", help="on lines that changed lately")
    parser.add_argument("--since", default="", help="commit; by default see support/changed.py")
    parser.add_argument("--count", type=int, default=1900, help="mutants, of the named kinds all")
    parser.add_argument("--only", default="", help="files whose path has this pattern")
    parser.add_argument("--kinds", default="", help="kinds whose name has this pattern")
    parser.add_argument("--named", action="store_true", help="the kinds of which none may live")
    parser.add_argument("--slots", type=int, default=2, help="processes at a time")
    given = parser.parse_args()
    root = Path.cwd()
    mutation = Mutation(root, PLACES, Path("out/mutants"), given.slots)
    changed = None
    if given.changed:
        changes = Changes(root, given.since)
        changed = changes.lines(mutation.texts)
        print(f"Mutants of {sum(map(len, changed.values()))} lines: {changes}.", flush=True)
    kinds = "|".join(map(re.escape, NAMED)) if given.named else given.kinds
    sys.exit(mutation.run(given.minutes, given.count, given.only, kinds, changed))
