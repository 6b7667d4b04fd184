"""The driver: `python -m support.mutation`, which `make mutants` runs; see `--help`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from support.mutation.driver import PLACES, Mutation

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__)
    parser.add_argument("--minutes", type=float, help="what comes first, in so many minutes")
    parser.add_argument("--count", type=int, default=1900, help="mutants, of the named kinds all")
    parser.add_argument("--only", default="", help="files whose path has this pattern")
    parser.add_argument("--kinds", default="", help="kinds whose name has this pattern")
    parser.add_argument("--slots", type=int, default=2, help="processes at a time")
    given = parser.parse_args()
    mutation = Mutation(Path.cwd(), PLACES, Path("out/mutants"), given.slots)
    sys.exit(mutation.run(given.minutes, given.count, given.only, given.kinds))
