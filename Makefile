# From a bare clone with python3 (3.11 or later), make and a C compiler: `make demo`,
# `make demo-phones`, `make test`.

PYTHON ?= python3
V := .venv/bin
PIP := $(V)/python -m pip --quiet --disable-pip-version-check
OUT := out/demo
SITTING := out/phones
DEMO := simulate --discovery both --phones 500 --recordings 100 --data soundscapes --pool 300 --dropout 0.1 --summation real --out $(OUT) --overwrite
SELECT := not slow
EXAMPLES := quick
COUNTED :=
COSTS := out/costs.jsonl
BEGUN := $(shell date +%s)
comma := ,

# Types are checked beside the tests: mypy keeps only one core busy.
MAKEFLAGS += --jobs=2

# Hundreds of test processes import the same files: each is compiled once.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo demo-phones test ci test-all mutants browser lint types imports unit phone-page docs format lock lowest clean
.DEFAULT_GOAL := help

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: .venv/.editable ## run both routes over one crowd of 500 simulated phones, in two minutes
	@echo "Simulating both routes: half a minute, and less when run again."
	$(V)/earshot $(DEMO)
	@echo "Both routes on one page: $(CURDIR)/$(OUT)/report.html"

demo-phones: browser ## let a dozen real pages and a hundred phones in Python find names in one sitting
	@echo "A sitting with a server, its helper, 12 pages in browsers and 108 phones: two minutes."
	$(V)/earshot bench sitting --pages 12 --phones 108 --out $(SITTING)

# ONLY=protocol, or another folder of tests: style, the package's types, and the tests of this folder.
ifdef ONLY
ifneq (,$(filter ci test-all,$(MAKECMDGOALS)))
$(error ONLY is for make test)
endif
CHECKS := lint types unit
else
CHECKS := browser lint types imports unit
endif
COUNTED_TESTS := tests/protocol tests/client tests/server/sums tests/server/phones tests/models/phones
TIMES = $(V)/python tests/support/timing.py $(COSTS) --begun=$(BEGUN)

test: $(CHECKS) ## everything a change must pass
	$(TIMES)

# tests/support/changed.py determines what has changed, since another commit with SINCE=COMMIT.
ci: COUNTED := $(COUNTED_TESTS)
ci: $(CHECKS) ## test as .ci/run does: with coverage, and slow tests and mutants of recent changes
	$(COVERAGE)
	PYTHONPATH=tests $(V)/python -m support.changed --minutes=5 --since=$(SINCE) -- $(PYTEST)
	$(MAKE) mutants WHICH='--changed --since=$(SINCE) --minutes=3'
	$(TIMES)

test-all: SELECT :=
test-all: EXAMPLES := earshot
test-all: COUNTED := $(COUNTED_TESTS)
test-all: $(CHECKS) ## test everything: all slow tests, all examples, all mutants that must fail
	$(COVERAGE)
	$(MAKE) mutants WHICH=--named
	$(TIMES)

# Each of the two packages must reach the limit by itself.
define COVERAGE
	$(V)/coverage report --include='protocol/*' --fail-under=90
	$(V)/coverage report --include='client/*' --fail-under=90
endef

lint: .venv/.installed
	$(V)/ruff check .
	$(V)/ruff format --check .
	$(V)/shellcheck deploy/install.sh .ci/run

types: .venv/.installed
	$(V)/mypy $(addprefix -p earshot_,$(filter-out web system,$(ONLY)))

imports: .venv/.installed
	$(V)/lint-imports

# Before anything else, because a machine may have no browser.
ifneq (,$(if $(ONLY),,$(filter test ci test-all,$(MAKECMDGOALS))))
lint types imports: | browser
endif
browser: .venv/.installed
	@PYTHONPATH=tests $(V)/python -m support.browser

# Four processes on two cores: many tests wait for servers that they have started.
# Coverage takes a third of the tests' time, so only tests that reach the two packages measure it.
PYTEST = -n 4 --dist loadfile --no-loadscope-reorder --hypothesis-profile=$(EXAMPLES) --costs=$(COSTS)
unit: $(if $(filter protocol client models,$(ONLY)),.venv/.installed,browser)
	@echo "Testing: 6 minutes on two idle cores; longer with ci and test-all."
	@mkdir -p $(dir $(COSTS)) && rm -f $(COSTS)
	$(V)/python -m compileall -q -j 0 protocol client server models simulations
	$(if $(COUNTED),$(V)/pytest $(PYTEST) -m "$(SELECT)" --cov --cov-report= $(COUNTED))
	$(V)/pytest $(PYTEST) -m "$(SELECT)" $(COUNTED:%=--ignore-glob='%/*') $(ONLY:%=tests/%)

# All of them take about an hour; WHICH=--help lists options. Results are kept in out/mutants.
mutants: .venv/.installed ## insert faults into protective code, one at a time: a test must fail
	PYTHONPATH=tests OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(V)/python -m support.mutation $(WHICH)

phone-page: .venv/.installed ## bundle the phone's page into the server's package
	PYTHONPATH=tests $(V)/python -m support.compiled_page

# From scratch, as a page that is kept from a build before would keep its warnings to itself.
docs: .venv/docs/.installed ## build the site, with its examples, into out/site
	rm -rf out/site docs/gallery
	.venv/docs/bin/sphinx-build -W --keep-going -q -E -c docs/site -d .venv/docs/doctrees . out/site
	@echo "The site: $(CURDIR)/out/site/index.html"

format: .venv/.installed ## format, and fix what ruff can
	$(V)/ruff format .
	$(V)/ruff check --fix .

# For all supported Pythons: newer ones need additional packages. Each package has one version.
define compile
	echo '# Exact versions of $(3). Written by `make lock`.' > .venv/lock/header
	.venv/lock/bin/uv pip compile --quiet --no-config --universal --fork-strategy fewest \
		--python-version 3.11 $(2) --no-strip-extras --generate-hashes --no-header --no-annotate \
		--no-emit-package earshot-sensing --output-file .venv/lock/found.txt pyproject.toml
	sed 's/, /,/' .venv/lock/found.txt | cat .venv/lock/header - > $(1)
	rm .venv/lock/found.txt
endef

# Pins keep the extras that packages require: without one, pip would look for the newest version of
# the package with its extra, which has no hash. Constraints must not have extras.
lock: ## choose the newest versions that pyproject.toml allows and pin them
	$(PYTHON) -m venv --clear .venv/lock
	.venv/lock/bin/python -m pip --quiet install uv==0.13.9
	echo 'hatchling>=1.27' > .venv/lock/build.txt
	$(call compile,requirements.lock,--extra dev,all that `make test` installs)
	sed 's/\[[^]]*\]==/==/' requirements.lock > .venv/lock/versions.txt
	$(call compile,deploy/requirements.lock,--extra server .venv/lock/build.txt \
		--constraint .venv/lock/versions.txt,what the server needs$(comma) and of what builds it)
	$(call compile,simulations/requirements.lock,--extra simulations .venv/lock/build.txt \
		--constraint .venv/lock/versions.txt,what `make demo` installs)
	$(call compile,docs/requirements.lock,--extra simulations --extra tables --group docs .venv/lock/build.txt \
		--constraint .venv/lock/versions.txt,what `make docs` installs)

# With uv, since pip installs the newest alone. The whole takes half an hour, and is no part of CI.
lowest: VERSIONS := lowest
lowest: fresh
LOWEST_TESTS := tests/protocol tests/client tests/server tests/models tests/simulations
lowest: ## run tests with the lowest versions that pyproject.toml allows (LOWEST_TESTS=...)
	$(PYTHON) -m venv --clear .venv/lowest
	.venv/lowest/bin/python -m pip --quiet install uv==0.13.9
	.venv/lowest/bin/uv pip install --quiet --python .venv/lowest/bin/python --only-binary :all: \
		--resolution lowest-direct --editable '.[dev,microphone]'
	PYTHONPATH=tests .venv/lowest/bin/python -m support.lowest
	.venv/lowest/bin/pytest -n 2 --dist loadfile -m "not slow" --hypothesis-profile=quick $(LOWEST_TESTS)

clean: ## remove what make made
	rm -rf .venv out docs/gallery .coverage .coverage.* .pytest_cache .mypy_cache .ruff_cache .hypothesis \
		.import_linter_cache
	find . -name __pycache__ -prune -exec rm -rf {} +

# Packages for `make demo` come first; those that only `make test` needs are added to them.
.venv/.simulations: simulations/requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or later is needed: make PYTHON=..." \
		if sys.version_info < (3, 11) else 0)'
	@echo "Installing what simulations need: 700 MB on disk, about a minute."
	@$(PYTHON) -m venv --clear .venv
	@$(V)/python deploy/packages.py $<
	@touch $@

# hatchling is locked like the rest, so building takes no second, unpinned environment.
.venv/.editable: .venv/.simulations pyproject.toml
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

.venv/.installed: requirements.lock | .venv/.editable
	@echo "Installing what tests need as well: 4 GB on disk, two to three minutes."
	@$(V)/python deploy/packages.py $<
	@touch $@

# Each wheel with each extra, and with those that a command needs, at lowest and at locked versions.
VERSIONS := lowest locked
PYTHONS := $(PYTHON)
.PHONY: fresh
fresh: .venv/.installed ## install each wheel with each extra, and run what it carries (PYTHONS=...)
	$(PYTHON) -m venv --clear .venv/fresh
	.venv/fresh/bin/python -m pip --quiet install uv==0.13.9
	set -e; for versions in $(VERSIONS); do \
		PYTHONPATH=tests $(V)/python -m support.fresh .venv/fresh/bin/uv $$versions $(PYTHONS); done

# From the last commit alone; CONTRIBUTING.md, *Releasing*, says what comes before and after.
.PHONY: release
release: .venv/.installed ## write what a release publishes into out/release
	PYTHONPATH=tests $(V)/python -m support.release out/release

.venv/docs/.installed: docs/requirements.lock pyproject.toml
	@echo "Installing what the site needs: 800 MB on disk, about a minute."
	@$(PYTHON) -m venv --clear .venv/docs
	@.venv/docs/bin/python deploy/packages.py $<
	@.venv/docs/bin/python -m pip --quiet --disable-pip-version-check install --no-deps \
		--no-build-isolation --editable .
	@touch $@
