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
# Some machines set this for everybody, and nothing would be cached at all.
unexport PYTHONDONTWRITEBYTECODE
# What the checks found of a file is known in the next clone, too: they go by its content.
export MYPY_CACHE_DIR := $(TIDEGATE_CACHE)/mypy
export RUFF_CACHE_DIR := $(TIDEGATE_CACHE)/ruff

NAME ?= dev
ARGS ?=
N ?=
SEED ?=
SLICE ?=
export WORKERS ?= 2

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

.PHONY: check lint format generate golden mistakes test test-all test-unit test-integration test-e2e durations
check: lint ## style, types, import contracts, layout, generated files: under a minute
	$(VENV)/bin/pytest -q tests/unit/architecture

lint: setup ## the same without the tests of the layout, which are in the unit tier
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports --cache-dir $(TIDEGATE_CACHE)/imports
	$(PYTHON) -m tests.clones
	$(PYTHON) charts/sync_crds.py --check
	$(PYTHON) docs/generate_reference.py --check
	$(PYTHON) docs/generate_metrics.py --check
	$(PYTHON) docs/generate_sources_and_sinks.py --check
	$(PYTHON) docs/generate_compatibility.py --check
	$(PYTHON) docs/generate_starts_and_ends.py --check
	$(PYTHON) docs/generate_reasons.py --check
	$(PYTHON) docs/generate_upgrades.py --check
	$(PYTHON) docs/generate_troubleshooting.py --check
	$(PYTHON) -m supply_chain.base_images --check

format: setup ## fix what the checks of style can fix
	$(VENV)/bin/ruff format .
	$(VENV)/bin/ruff check --fix .

generate: setup ## write every generated file again: the chart's CRDs, the reference, the list of metrics
	$(PYTHON) docs/generate_reference.py
	$(PYTHON) charts/sync_crds.py
	$(PYTHON) docs/generate_metrics.py
	$(PYTHON) docs/generate_sources_and_sinks.py
	$(PYTHON) docs/generate_compatibility.py
	$(PYTHON) docs/generate_starts_and_ends.py
	$(PYTHON) docs/generate_reasons.py
	$(PYTHON) docs/generate_upgrades.py
	$(PYTHON) docs/generate_troubleshooting.py

golden: setup ## write the golden files that tests compare whole pods with; read the difference then
	TIDEGATE_GOLDEN=write $(VENV)/bin/pytest -q $$(grep -rl --include='test_*.py' 'assert_golden(__file__' tests)

mistakes: setup ## search again for what shows a planted mistake, where what is recorded does so no longer
	TIDEGATE_MISTAKES=write $(VENV)/bin/pytest -q -m 'not long' -k 'not test_there_is' --numprocesses 2 \
		$$(grep -rl --include='test_*.py' 'PLANTED.assert_noticed' tests)

# What tests with servers need is built beside the tests without (tests/gate).
test: setup ## what a change has to pass: half an hour on two cores, and once half as much to build all
	@$(PYTHON) -m tests.gate $(if $(ARGS),-- $(ARGS))

test-all: setup ## every test, those marked long too, with fresh seeds: make test-all [SLICE=1/3]
	@$(PYTHON) -m tests.gate --all $(if $(SLICE),--slice $(SLICE)) $(if $(ARGS),-- $(ARGS))

test-unit: setup ## tests without servers, 500 simulated schedules among them: minutes
	@$(PYTHON) -m tests.gate --only unit $(if $(ARGS),-- $(ARGS))

test-integration: setup ## tests with a real API server, real Spark on this machine, real S3 and Kafka servers
	@$(PYTHON) -m tests.gate --only integration $(if $(ARGS),-- $(ARGS))

test-e2e: setup ## tests with real pods, on development clusters or on the one that TIDEGATE_KUBECONFIG names
	@$(PYTHON) -m tests.gate --only e2e $(if $(ARGS),-- $(ARGS))

.PHONY: compatibility
compatibility: setup ## every pattern of docs/compatibility.md, on local Spark and on a cluster: an hour or two
	@$(PYTHON) -m tests.gate --own-slice $(if $(ARGS),-- $(ARGS))

durations: setup ## renew tests/durations.json from the last run of make test or make test-all
	@$(PYTHON) -m tests.gate.durations $(or $(TIDEGATE_REPORTS),$(TIDEGATE_CACHE)/gate/reports)

record: setup ## add the last run's line of JSON to tests/runs.jsonl: make record [REMARK=cold]
	@$(PYTHON) -m tests.gate.record $(if $(REMARK),--remark '$(REMARK)')

.PHONY: test-changed test-noisy record
test-changed: setup ## tests that a change can break, and why: make test-changed [BASE=main] [ARGS=--list]
	@$(PYTHON) -m tests.gate.changed $(if $(BASE),--base $(BASE)) $(ARGS)

test-noisy: setup ## the same, or those in ARGS, three times beside two busy loops: make test-noisy [ARGS="--help"]
	@$(PYTHON) -m tests.gate.noisy $(if $(BASE),--base $(BASE)) $(ARGS)

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

.PHONY: clones
clones: setup ## pieces of the product that are alike, which lint refuses: make clones [ARGS="--least 40"]
	@$(PYTHON) -m tests.clones $(ARGS)

.PHONY: walks
walks: tools ## modules that an edit, a message, a snapshot and a crash pass: make walks [ARGS=--strict]
	@$(PYTHON) -m tests.walks $(ARGS)

# --- the development cluster ------------------------------------------------------------------------------------------

.PHONY: demo settings variants flights cluster-up cluster-down kubectl s3-up s3-down kafka-up kafka-down rabbitmq-up rabbitmq-down images
demo: setup ## the whole thing at work: real data through Kafka into an application on a real Kubernetes
	@$(PYTHON) -m devcluster.demo --name $(NAME) $(ARGS)

# Each hour of readings waits until the log has the message before it: fewer of them take as long.
settings: setup ## the demo with its settings as control messages, which need no topic: sent, checked
	@$(PYTHON) -m devcluster.demo --name $(NAME) --settings-from messages --readings 3600 $(ARGS)

variants: setup ## after a demo: two variants of its application on one snapshot, compared (table, picture)
	@$(PYTHON) -m devcluster.demo.forking --name $(NAME) $(ARGS)

flights: setup ## the other demo: a model learns from a year of flights; it is inspected, corrected, restarted
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

# --- pages --------------------------------------------------------------------------------------------------------------

.PHONY: docs docs-serve
docs: setup ## build the site of all pages into build/site; a dead link fails
	@docs/build_site.sh build

docs-serve: setup ## build the site and show it on http://127.0.0.1:8000
	@docs/build_site.sh serve

# --- pins -------------------------------------------------------------------------------------------------------------

.PHONY: lock renew-jars renew-bases
renew-bases: setup ## ask the registries for the base images' newest digests; without one, say so
	@$(PYTHON) -m supply_chain.base_images

renew-jars: setup ## fetch all jars again and write their hashes, those of Maven's plugins and POMs, too
	@images/jars/renew.sh

lock: setup ## resolve the dependencies again into locks/ (hashes, no addresses)
	@devcluster/lock.sh

.PHONY: wheel sbom
sbom: setup ## bills of materials into dist/sbom, CycloneDX: make sbom [ARGS=--no-images]
	@$(if $(filter --no-images,$(ARGS)),,$(PYTHON) -m devcluster images build)
	@supply_chain/sbom.sh dist/sbom $(ARGS)

wheel: setup ## build the distribution into dist/
	$(TIDEGATE_CACHE)/boot/bin/uv build --wheel --quiet --out-dir dist
