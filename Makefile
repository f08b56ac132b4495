# Everything a contributor does. It needs Linux or macOS with Python >= 3.11, its venv module, and make; `make help`
# lists it. What is tested and shown is the built wheel in an environment of its own, not the source tree.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-all check bench format lock clean

# The interpreter of the environments below. If it is too old, tools/make-venv looks for python3.11 to python3.14.
PYTHON ?= python3
# More words for pytest, the demo or the benchmark: make test ARGS='-k retry'
ARGS ?=

# What is run on every kind of server.
ON_ANY_SERVER := tests/scripts tests/store tests/queue tests/worker tests/model

TEST := build/venv-test
DEMO := build/venv-demo
# Folders too, so that a file that goes is missed.
PACKAGE := $(shell find src ! -name '*.pyc' ! -name __pycache__) pyproject.toml README.md LICENSE

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: $(DEMO)/.installed ## jobs from Python and Spark, a worker, and the table of their runs, in a minute or two
	$(DEMO)/bin/python demo/run.py $(ARGS)

test: $(TEST)/.installed ## the tests that every change must pass: on Valkey, at most 8 minutes
	SKEP_TEST_WHEEL=1 $(TEST)/bin/pytest -m 'not long' $(ARGS)

test-all: $(TEST)/.installed ## all tests: also the long random runs and the other servers, at most 25 minutes
	SKEP_TEST_WHEEL=1 $(TEST)/bin/pytest $(ARGS)
	@if command -v redis-server >/dev/null; then \
		echo "== the same on $$(redis-server --version | cut -d ' ' -f 1-3)"; \
		SKEP_TEST_SERVER=redis-server $(TEST)/bin/pytest -m 'not long' $(ON_ANY_SERVER) $(ARGS); \
	else \
		echo "skipped: the tests on Redis (there is no redis-server on the PATH)"; \
	fi

check: $(TEST)/.installed ## format, lint, types, dead code, and the rules of tests/architecture
	$(TEST)/bin/ruff format --check
	$(TEST)/bin/ruff check
	$(TEST)/bin/mypy
	$(TEST)/bin/pyright --pythonpath $(TEST)/bin/python
	$(TEST)/bin/vulture
	SKEP_TEST_WHEEL=1 $(TEST)/bin/pytest -q tests/architecture

bench: $(TEST)/.installed ## measure skep beside the raw server and bee-queue; prints each target as PASS or SHORT
	$(TEST)/bin/python bench/run.py $(ARGS)

format: $(TEST)/.locked ## lay out the code and mend what can be mended by machine
	$(TEST)/bin/ruff format
	$(TEST)/bin/ruff check --fix

lock: ## write the lock files (on Python 3.11); ARGS=--upgrade for the newest versions
	tools/lock build/venv-lock $(ARGS)

clean: ## remove what make has made
	rm -rf build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache

$(TEST)/.locked: LOCK := requirements-dev.txt
$(TEST)/.locked: requirements-dev.txt
$(DEMO)/.locked: LOCK := requirements.txt
$(DEMO)/.locked: requirements.txt
build/%/.locked: tools/make-venv
	PYTHON='$(PYTHON)' tools/make-venv $(@D) $(LOCK)
	@touch $@

build/%/.installed: build/%/.locked $(PACKAGE)
	@rm -rf $(@D)/wheel
	$(@D)/bin/pip wheel --quiet --no-deps --wheel-dir $(@D)/wheel .
	$(@D)/bin/pip install --quiet --no-deps --force-reinstall $(@D)/wheel/skep-*.whl
	@$(@D)/bin/pip check
	@touch $@
.PRECIOUS: build/%/.locked
