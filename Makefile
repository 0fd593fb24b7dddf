# Tidegate: everything a person types. `make` or `make help` lists it.
#
# Third-party packages, Go tools, jars and images are cached outside the checkout, so that a second clone starts warm.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

export TIDEGATE_CACHE ?= $(HOME)/.cache/tidegate
VENV := $(TIDEGATE_CACHE)/venv/$(shell sha256sum locks/dev.lock | cut -c1-12)
PYTHON := $(VENV)/bin/python
export PYTHONPATH := operator:spark_app:.:tests/support
# Bytecode outside the checkout: each of the many processes that tests start would compile what it imports otherwise.
export PYTHONPYCACHEPREFIX := $(TIDEGATE_CACHE)/bytecode

NAME ?= dev
ARGS ?=
N ?=
SEED ?=

.PHONY: help
help: ## this list
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-18s %s\n", $$1, $$2}'

# --- what a machine needs ---------------------------------------------------------------------------------------------

.PHONY: setup python tools
setup: ## install what this machine lacks (Debian packages, Python environment): at once if nothing
	@devcluster/bootstrap.sh >/dev/null

python: setup ## print the path of the Python that has everything
	@echo $(PYTHON)

tools: setup ## build the Go programs of the development cluster (Kubernetes, etcd, Helm, S3 server …), once
	@$(PYTHON) -m devcluster tools >/dev/null

# --- checks and tests -------------------------------------------------------------------------------------------------

.PHONY: check format generate test test-unit test-integration test-e2e
check: setup ## style, types, import contracts, layout, generated files: under a minute
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports
	$(PYTHON) charts/sync_crds.py --check
	$(PYTHON) docs/generate_reference.py --check
	$(PYTHON) docs/generate_metrics.py --check
	$(VENV)/bin/pytest -q tests/unit/architecture

format: setup ## mend what the checks of style can mend
	$(VENV)/bin/ruff format .
	$(VENV)/bin/ruff check --fix .

generate: setup ## write every generated file again: the chart's CRDs, the reference, the list of metrics
	$(PYTHON) charts/sync_crds.py
	$(PYTHON) docs/generate_reference.py
	$(PYTHON) docs/generate_metrics.py

# What tests with servers need is built beside the tests without: much of that is waiting for downloads. So is the image
# that one end-to-end test needs, beside the tests before those.
test: setup ## every test: about an hour on two cores, with a quarter more to build everything first
	@set -m; log=$$(mktemp); built=; trap 'kill -- -$$built 2>/dev/null || true; rm -f "$$log"' EXIT; \
		follow() { echo "test: what is built beside:"; tail --lines=+1 --follow --pid=$$built "$$log"; wait $$built; }; \
		{ nice $(MAKE) tools & tools=$$!; nice $(PYTHON) -m devcluster images build && wait $$tools; } >"$$log" 2>&1 & built=$$!; \
		$(MAKE) check test-unit; follow; \
		nice --adjustment=19 $(PYTHON) -m devcluster images build --tests >"$$log" 2>&1 & built=$$!; \
		$(MAKE) test-integration; follow; \
		$(MAKE) test-e2e

test-unit: setup ## tests without servers, 2,000 simulated schedules among them: two minutes or three
	$(VENV)/bin/pytest tests/unit tests/property tests/scenario --numprocesses 2 --dist worksteal $(ARGS)

# Each of the two workers has servers of its own; a file's tests stay together, because they share such servers. Of the
# order of the files the tests' own list decides (tests/integration/conftest.py), not how many tests a file has.
test-integration: tools ## tests with a real API server, real Spark on this machine, real S3 and Kafka servers
	$(VENV)/bin/pytest tests/integration --numprocesses 2 --dist loadfile --no-loadscope-reorder --durations=40 $(ARGS)

# Two workers with a cluster each, but on a cluster that is given there is room for one.
test-e2e: tools ## tests with real pods, on development clusters or on the one that TIDEGATE_KUBECONFIG names
	@[ -n "$${TIDEGATE_KUBECONFIG:-}" ] || $(PYTHON) -m devcluster images build
	[ -n "$${TIDEGATE_KUBECONFIG:-}$${TIDEGATE_E2E_CLUSTER:-}" ] || workers="--numprocesses 2 --dist loadfile"; \
		$(VENV)/bin/pytest tests/e2e $${workers:+$$workers --no-loadscope-reorder} --durations=10 $(ARGS)

.PHONY: coverage
coverage: setup ## lines that unit and integration tests execute: make coverage [SELECTION="not long"]
	@$(PYTHON) -m tests.gate.coverage $(if $(SELECTION),-m '$(SELECTION)') $(ARGS)

.PHONY: scenario
scenario: setup ## random schedules of misfortune, simulated: make scenario [N=2000 | SEED=123]
	@$(PYTHON) -m tests.scenario $(if $(SEED),--seed $(SEED),--count $(or $(N),2000)) $(ARGS)

.PHONY: autoscaling
autoscaling: setup ## the autoscaler's rule, the HPA's and Spark's on the same simulated load: a table and a picture
	@$(PYTHON) -m tests.autoscaling $(ARGS)

.PHONY: bench
bench: tools ## measure, side by side in one run: make bench NAME=submit [ARGS="--help"]
	@$(PYTHON) -m tests.bench $(if $(filter-out dev,$(NAME)),$(NAME)) $(ARGS)

.PHONY: chaos
chaos: tools ## faults under load on a real cluster, each record accounted for: make chaos N=50
	@$(PYTHON) -m tests.chaos $(if $(N),--faults $(N)) $(ARGS)

.PHONY: attack
attack: tools ## snapshots while Spark cleans up under them, each compared with its batch: make attack N=200
	@$(PYTHON) -m tests.attack $(if $(N),--snapshots $(N)) $(ARGS)

# --- the development cluster ------------------------------------------------------------------------------------------

.PHONY: demo settings variants flights cluster-up cluster-down kubectl s3-up s3-down kafka-up kafka-down rabbitmq-up rabbitmq-down images
demo: setup ## the whole thing at work: real data through Kafka into an application on a real Kubernetes
	@$(PYTHON) -m devcluster.demo --name $(NAME) $(ARGS)

# Each hour of readings waits until the log has the message before it: fewer of them take as long.
settings: setup ## the demo with its settings as control messages, which need no topic: sent, checked
	@$(PYTHON) -m devcluster.demo --name $(NAME) --settings-from messages --readings 3600 $(ARGS)

variants: setup ## after a demo: two variants of its application on one snapshot, compared (table, picture)
	@$(PYTHON) -m devcluster.demo.forking --name $(NAME) $(ARGS)

flights: setup ## the other demo: a model learns from a year of flights; it is looked into, mended, begun again
	@$(PYTHON) -m devcluster.demo.flights --name $(NAME) $(ARGS)

cluster-up: tools ## a real Kubernetes in a network namespace of its own: make cluster-up [NAME=dev]
	@$(PYTHON) -m devcluster up --name $(NAME)

cluster-down: setup ## take it away again, with all its processes, mounts and files
	@$(PYTHON) -m devcluster down --name $(NAME)

kubectl: setup ## ask that cluster: make kubectl ARGS="get sapp -A"
	@$(PYTHON) -m devcluster kubectl --name $(NAME) -- $(ARGS)

s3-up: tools ## an S3 server that the cluster's pods reach
	@$(PYTHON) -m devcluster s3 up --name $(NAME)

s3-down: setup ## stop the S3 server and remove its data
	@$(PYTHON) -m devcluster s3 down --name $(NAME)

kafka-up: setup ## a Kafka broker that the cluster's pods reach
	@$(PYTHON) -m devcluster kafka up --name $(NAME)

kafka-down: setup ## stop the Kafka broker and remove its data
	@$(PYTHON) -m devcluster kafka down --name $(NAME)

rabbitmq-up: setup ## a RabbitMQ broker that the cluster's pods reach
	@$(PYTHON) -m devcluster rabbitmq up --name $(NAME)

rabbitmq-down: setup ## stop the RabbitMQ broker and remove its data
	@$(PYTHON) -m devcluster rabbitmq down --name $(NAME)

images: setup ## build the images (no Docker needed) and load them into the cluster if it is up
	@$(PYTHON) -m devcluster images build
	@$(PYTHON) -m devcluster images load --name $(NAME)

# --- pins -------------------------------------------------------------------------------------------------------------

.PHONY: lock
lock: setup ## resolve the dependencies anew into locks/ (hashes, no addresses)
	@devcluster/lock.sh

.PHONY: wheel
wheel: setup ## build the distribution into dist/
	$(TIDEGATE_CACHE)/boot/bin/uv build --wheel --quiet --out-dir dist
