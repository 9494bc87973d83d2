# make demo   set up, and publish one release of scikit-learn's breast cancer table
# make quick  set up, and run the quick tests, in about a minute
# make test   set up, and run all tests
# make docs   set up, and build the documentation site in build/site
# The first Python of 3.11 or newer that really runs; set PYTHON to choose another.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
  $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
# Whole files, and one worker more than two cores, because some tests wait.
SIDE_BY_SIDE := -n 3 --dist loadfile --no-loadscope-reorder

.PHONY: demo quick test check docs acceptance benchmarks clean

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

# Fails on a link, an anchor or a page that is missing.
docs: .venv/ready
	$(BIN)/sphinx-build -q -E -W --keep-going -c docs -d build/doctrees . build/site
	@echo "Documentation: build/site/index.html"

acceptance: .venv/ready
	GRAMERCY_FULL=1 $(BIN)/python -m pytest -q $(SIDE_BY_SIDE) tests/acceptance tests/proofs

# What is missing in their results.jsonl, and their pages.
benchmarks: .venv/ready
	for each in statistics analyses utility denoising graphs coverage intervals solvers throughput papers; do $(BIN)/python -m benchmarks.$$each || exit 1; done

.venv/ready: requirements.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "Gramercy needs Python >= 3.11 (set PYTHON=...)"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

clean:
	rm -rf .venv
