# Two commands are all a newcomer needs: make demo, make test.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Neither command needs a model hub.
export HF_HUB_OFFLINE := 1

.PHONY: demo test test-fast lint types unit test-browser readme docs clean

demo: $(READY)
	$(BIN)/coterie demo --output demo-run --overwrite

test: lint types unit

# For the edit loop: a part of the tests that looks into every room, in about a minute; `make test` runs all.
test-fast: lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 --dist loadfile -m "not slow" tests

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python tools/readme_table.py --check
	$(BIN)/python tools/performance_page.py --check
	$(BIN)/python tools/benchmark_page.py --check
	$(BIN)/python tools/docs_pages.py --check
	$(BIN)/python tools/public_names.py --check

types: $(READY)
	$(BIN)/mypy
	$(BIN)/mypy benchmarks/papers

unit: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 --dist loadfile

# The tests in a real browser, which `make test` leaves out where there is none.
test-browser: $(READY)
	@for name in chromium chromium-browser google-chrome; do command -v $$name > /dev/null && exit 0; done; \
	  echo "no browser here: install chromium" >&2; exit 1
	$(BIN)/python -m pytest -q tests/browser

# The table of methods and the figures in the README, from the registry and from benchmarks/results/.
readme: $(READY)
	$(BIN)/python tools/readme_table.py
	$(BIN)/python tools/performance_page.py
	$(BIN)/python tools/benchmark_page.py
	$(BIN)/python tools/docs_pages.py
	$(BIN)/python tools/public_names.py

# The documentation as a site, in site/; see mkdocs.yml.
docs: $(READY)
	$(BIN)/python -m pip install -q -c constraints.txt "$$(grep '^zensical==' constraints.txt)"
	$(BIN)/python tools/docs_pages.py
	$(BIN)/python tools/docs_site.py

# torch comes first and pinned: left to the resolver it would pull gigabytes of GPU packages on a CPU machine.
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed: make PYTHON=python3.11")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q -c constraints.txt "$$(grep '^torch==' constraints.txt)"
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV) demo-run .mypy_cache .ruff_cache .pytest_cache .hypothesis
