# make demo   set up, and publish one release of a made-up table
# make quick  set up, and run the quick tests, in a minute and a half
# make test   set up, and run all tests
# make docs   set up, and build the documentation site in build/site
# make lock   resolve the pinned dependencies again, with the hashes of all their files
# make dist   build what a release publishes, in dist/: wheel, sdist, lock, SBOM, checksums
# The first Python of 3.11 or newer that really runs; set PYTHON to choose another.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
  $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
# Whole files, and a worker more than two cores, because some tests wait.
SIDE_BY_SIDE := -n 3 --dist loadfile --no-loadscope-reorder
# Locks are complete: nothing else is installed, and no file that they do not know.
INSTALL := -m pip install --quiet --no-deps --require-hashes --requirement
# The tools of a release have an environment of their own.
TOOLS := .venv-tools/bin

.PHONY: demo quick test check docs acceptance benchmarks audit-dependencies lock dist clean

demo: .venv/ready
	$(BIN)/gramercy demo

quick: .venv/ready
	$(BIN)/python -m pytest -q $(SIDE_BY_SIDE) -m "not slow"

test: .venv/ready
	$(BIN)/python -m pytest -q $(SIDE_BY_SIDE)

check: .venv/ready docs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/codespell
	$(BIN)/python docs/check_language.py
	$(MAKE) --no-print-directory audit-dependencies

# Fails on a link, an anchor or a page that is missing.
docs: .venv/ready
	$(BIN)/sphinx-build -q -E -W --keep-going -c docs -d build/doctrees . build/site
	@echo "Documentation: build/site/index.html"

acceptance: .venv/ready
	GRAMERCY_FULL=1 $(BIN)/python -m pytest -q $(SIDE_BY_SIDE) tests/acceptance tests/proofs tests/unit

# What is missing in their results.jsonl, and their pages.
benchmarks: .venv/ready
	for each in statistics analyses utility denoising graphs coverage intervals verdicts ablation solvers throughput load series factors papers; do $(BIN)/python -m benchmarks $$each || exit 1; done

# Fails on a pinned version with a known vulnerability; without access to advisories, it says so.
audit-dependencies:
	@if $(MAKE) --no-print-directory .venv-tools/ready; \
	then $(TOOLS)/python tools/audit_dependencies.py; \
	else echo "NOT AUDITED: the release tools cannot be installed."; fi

# Keeps the pinned versions, unless UPGRADE says otherwise: UPGRADE="--upgrade-package numpy", or
# UPGRADE=--upgrade for all.
lock: .venv-tools/ready
	$(TOOLS)/python tools/lock.py $(UPGRADE)

# From a clean commit. For a release, the advisories must be there.
dist: .venv-tools/ready
	$(TOOLS)/python tools/audit_dependencies.py $(if $(UNAUDITED),,--required)
	$(TOOLS)/python tools/dist.py

.venv-tools/ready: requirements-tools.lock
	$(PYTHON) -m venv .venv-tools
	$(TOOLS)/python $(INSTALL) requirements-tools.lock
	touch $@

.venv/ready: requirements.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "Gramercy needs Python >= 3.11 (set PYTHON=...)"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python $(INSTALL) requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

clean:
	rm -rf .venv .venv-tools
