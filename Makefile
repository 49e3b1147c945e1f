# Everything a person types. `make up` and `make test` need python3 (3.11 or newer) and
# make, nothing else: they make .venv themselves, from locked and hashed packages.

SHELL := /bin/sh
PYTHON ?= python3
# Handed on to pytest: make test ARGS="-k journey"
ARGS ?=
# How many processes run tests.
JOBS ?= 2

# Processes come and go by the hundred in a run of the tests: each would compile all it
# imports, which is most of what it takes one to start.
unexport PYTHONDONTWRITEBYTECODE

BIN := .venv/bin
UV_LOCK := requirements-uv.lock
COVER := $(if $(COVERAGE),--cov --cov-report=term-missing:skip-covered)
COMPILE := $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url \
	--no-annotate --no-header --no-emit-package counterseal-client

# make chaos SHORT=1: a few minutes instead of an hour.
# make chaos RETAIL=1: the retail tasks (../shared/data/retail) under the same faults.
CHAOS := $(if $(SHORT),--short) $(if $(RETAIL),--retail)

.PHONY: dist up test test-busy prove gallery check bench chaos conformance quickstart charts lock

up: .venv/.for-running
	@exec $(BIN)/python manage.py up --demo

test: .venv/.for-testing
	$(BIN)/python -m pytest -n $(JOBS) --durations=20 $(COVER) $(ARGS)

# The tests beside four processes that never rest: what waits for a time fails here.
test-busy: .venv/.for-testing
	@loops=; trap 'kill $$loops' EXIT; trap 'exit 130' INT TERM; \
	for _ in 1 2 3 4; do (while :; do :; done) & loops="$$loops $$!"; done; \
	$(BIN)/python -m pytest -n $(JOBS) $(ARGS)

# Every proof at its full number, one after the other; writes docs/proof.md.
prove: .venv/.for-testing
	$(BIN)/python -m tests.prove $(ARGS)

# Every page in every state, in a browser: var/gallery/index.html.
gallery: .venv/.for-testing
	$(BIN)/python -m tests.gallery -n $(JOBS) $(ARGS)

check: .venv/.for-testing
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/djade --check --target-version 5.2 $$(find templates demo -name '*.html')
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tests.house.figures
	$(BIN)/python -m tests.house.migration_steps
	$(BIN)/python manage.py check
	@# No database is asked: whether it agrees is a question for `migrate`.
	$(BIN)/python -W ignore::RuntimeWarning manage.py makemigrations --check --dry-run

# make bench PEERS=1: LangGraph, DBOS and awaithumans in the same run, each in an
# environment of its own below var/peers.
bench: .venv/.for-testing
	$(BIN)/python -m bench $(if $(PEERS),--peers) $(ARGS)

# The product under load while its processes and servers are killed, frozen and emptied:
# var/chaos/report.html.
chaos: .venv/.for-testing
	PYTHONPATH=client $(BIN)/python -m chaos $(CHAOS) $(ARGS)

# The adapters' checks with the real frameworks, each in an environment of its own:
# make conformance ARGS=langgraph
conformance: .venv/.for-testing
	PYTHONPATH=client:client/conformance $(BIN)/python -m tests.conformance $(ARGS)

# What reads the chart in tests/deploy, in an environment of its own: it is 390 MB.
charts: var/charts/.ready

var/charts/.ready: tests/deploy/requirements.lock
	$(PYTHON) -m venv var/charts
	var/charts/bin/python -m pip install --quiet --no-compile --require-hashes \
		-r tests/deploy/requirements.lock
	@touch $@

# The example of each framework, from an empty folder to the effect, by the clock:
# make quickstart ARGS="langgraph dbos"
quickstart: .venv/.for-testing
	PYTHONPATH=client:client/conformance $(BIN)/python -m tests.quickstart $(ARGS)

# Every package of a release, in dist/, each tried in an empty environment.
dist: var/release/.ready
	var/release/bin/python -m release $(ARGS)

var/release/.ready: release/requirements.lock $(UV_LOCK)
	$(PYTHON) -m venv var/release
	var/release/bin/python -m pip install --quiet --require-hashes -r release/requirements.lock \
		-r $(UV_LOCK)
	@touch $@

# After a change of pyproject.toml. Hashes, and no addresses.
lock: .venv/.for-running
	$(COMPILE) pyproject.toml -o requirements-server.lock
	$(COMPILE) pyproject.toml --extra local -o requirements.lock
	$(COMPILE) pyproject.toml --extra local --group dev -o requirements-dev.lock
	$(COMPILE) release/requirements.in -o release/requirements.lock
	$(COMPILE) tests/deploy/requirements.in -o tests/deploy/requirements.lock

.venv/.for-testing: requirements-dev.lock $(UV_LOCK)
	@sh hitl/local/install.sh $(PYTHON) requirements-dev.lock
	@touch .venv/.for-running $@

.venv/.for-running: requirements.lock $(UV_LOCK)
	@sh hitl/local/install.sh $(PYTHON) requirements.lock
	@rm -f .venv/.for-testing
	@touch $@
