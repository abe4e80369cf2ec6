# Windlass. `make` alone lists the commands.
SHELL       := /bin/bash
PYTHON      ?= python3
VENV        := .venv
BIN         := $(VENV)/bin
BENCH       ?= engine flow api lists streams
PIP_INSTALL := $(BIN)/pip --disable-pip-version-check --no-input install --quiet
COMPILE     := $(BIN)/uv pip compile --quiet --generate-hashes --no-header --no-emit-index-url --python-version 3.11
LOCK        := $(COMPILE) --extra build

.DEFAULT_GOAL := help
.PHONY: help up test check fmt bench chaos migrate lock packages clean

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

up: packages $(VENV)/.runtime ## run everything: Postgres, RabbitMQ, api, dispatcher, actors, janitor (Ctrl-C stops it)
	@exec $(BIN)/windlass up

test: packages $(VENV)/.dev $(VENV)/.s3 ## run every test against a private Postgres and RabbitMQ
	@$(BIN)/pytest -n 3 --dist loadfile

check: packages $(VENV)/.dev ## formatting, lint, types, import contracts, drawn documents
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python -m docs.draw --check

fmt: $(VENV)/.dev ## format the code, mend what lint can mend, redraw the documents
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .
	@$(BIN)/python -m docs.draw

bench: packages $(VENV)/.dev ## measure everything against bare parts on the same servers (BENCH=api: one of them)
	@for each in $(BENCH); do $(BIN)/python -m bench.$$each || exit 1; done

chaos: packages $(VENV)/.dev ## kill, freeze and restart workers under load, and count whether the limits hold
	@$(BIN)/python -m tests.chaos.never_over_the_limit

migrate: $(VENV)/.runtime ## bring the database that WINDLASS_DATABASE_URL names to the newest schema
	@$(BIN)/windlass migrate

lock: $(VENV)/.dev ## choose the newest allowed versions anew, with their hashes
	@$(LOCK) --upgrade -o requirements.lock pyproject.toml
	@$(LOCK) --upgrade --extra dev -c requirements.lock -o requirements-dev.lock pyproject.toml
	@$(COMPILE) --upgrade -o tests/s3/requirements.lock tests/s3/requirements.in

clean: ## remove the virtual environment and caches (never the data directory)
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

packages:
	@$(PYTHON) services/cli/packages.py

$(VENV)/bin/python:
	@echo "windlass: creating the virtual environment"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.runtime: requirements.lock pyproject.toml | $(VENV)/bin/python
	@echo "windlass: installing the locked dependencies"
	@$(PIP_INSTALL) --require-hashes -r requirements.lock
	@$(PIP_INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.dev: requirements-dev.lock $(VENV)/.runtime
	@echo "windlass: installing the development tools"
	@$(PIP_INSTALL) --require-hashes -r requirements-dev.lock
	@touch $@

# The S3 server of the tests wants other versions of what Windlass itself needs, so it has an environment of its own.
$(VENV)/.s3: tests/s3/requirements.lock | $(VENV)/bin/python
	@echo "windlass: installing the S3 server that the tests use"
	@$(PYTHON) -m venv $(VENV)/s3
	@$(VENV)/s3/bin/pip --disable-pip-version-check --no-input install --quiet --require-hashes -r $<
	@touch $@
