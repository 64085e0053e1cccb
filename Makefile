# SPDX-License-Identifier: Apache-2.0
# The commands of a working tree; `make` lists them. All can be repeated, and do only what is left to do.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

JOBS ?= $(shell n=$$(nproc); echo $$((n < 8 ? n : 8)))
NATIVE := build/native
STAMPS := build/stamps
PYTHON := .venv/bin/python
CTEST := ctest --test-dir $(NATIVE) --output-on-failure --no-tests=error -j $(JOBS)
# Tests wait for disks that sleep, for ranks that do not come, for launchers.
WORKERS ?= $(shell echo $$((2 * $(JOBS))))
# A worker that crashes ends the run: pytest-xdist may wait for ever for the one that replaces it.
PYTEST := $(PYTHON) -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder --max-worker-restart=0 --durations=8
PYTEST_ARGS ?=
THIRD_PARTY_ARGS ?=
# Two builds in one tree take turns.
LOCKED := flock build/lock
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_INPUT := 1
# Thousands of interpreters start in the tests: each would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE
# pip installs the package without building it; by variable, as pip before 23.1 has no option for it.
local_install := SKBUILD_WHEEL_CMAKE=false

# The command alone in a directory for PATH: that of .venv has a python3 and a pip of its own.
COMMAND := mkdir -p build/bin && ln -sfn ../../.venv/bin/weir build/bin/weir

.PHONY: help install-deps demo-deps build demo-build demo test unit pytest bench third-party reference lock clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 22

install-deps: ## install the system packages that are missing, or say which (tools/packages.txt)
	@tools/install-deps

build: install-deps .venv/ready $(STAMPS)/configured ## build everything native and the Python environment in .venv
	@$(COMMAND)
	@status=0; $(LOCKED) cmake --build $(NATIVE) -j $(JOBS) -- -k 0 || status=$$?; \
	  $(LOCKED) cmake --install $(NATIVE) --prefix python --component python >/dev/null; exit $$status

demo: demo-build ## trace the 4dvar workload on a slow file system, print what cures it, run it with that, print both
	@tools/demo

# What the demo needs and no more, unless the whole is there already.
demo-deps:
	@tools/install-deps --demo

demo-build: demo-deps .venv/demo $(if $(wildcard $(STAMPS)/configured),,$(STAMPS)/configured-demo)
	@$(COMMAND)
	@$(LOCKED) cmake --build $(NATIVE) -j $(JOBS) --target weir_python weir_4dvar
	@$(LOCKED) cmake --install $(NATIVE) --prefix python --component python >/dev/null

# Both runners run to their end, whatever the first one finds.
test: build $(STAMPS)/rewritten ## all tests: native, Python, parity, tidy
	@status=0; $(CTEST) || status=$$?; $(PYTEST) $(PYTEST_ARGS) || status=$$?; exit $$status

unit: build $(STAMPS)/rewritten ## the quick tests alone: native ones, and of Python those that start no program
	@status=0; $(CTEST) || status=$$?; $(PYTEST) -m "not programs and not slow" $(PYTEST_ARGS) || status=$$?; exit $$status

# pytest rewrites the files of tests and keeps them: once here, not once in each worker. What fails is shown later.
TESTED := tests "python native workloads tools"
$(STAMPS)/rewritten: $(shell find tests python native workloads tools -name '*.py') | build
	@printf '%s\n' $(TESTED) | xargs -L 1 -P $(JOBS) $(PYTHON) -m pytest --collect-only --quiet >/dev/null 2>&1 || true
	@touch $@

bench: build ## what tracing costs per call and how fast traces are read (minutes; wants an idle machine)
	@bench/run

third-party: build ## run suites of others plain and with weir, and write docs/validation (takes hours)
	@$(PYTHON) tests/third_party $(THIRD_PARTY_ARGS)

reference: .venv/ready ## renew the pages of docs/reference that are made from code
	@$(PYTHON) tools/gen_docs.py

lock: .venv/ready ## show what is newest within the ranges of pyproject.toml, for tools/requirements.lock
	@$(local_install) $(PYTHON) -m pip install --dry-run --upgrade --ignore-installed --no-build-isolation --quiet \
	  --report - '.[test]' | $(PYTHON) -c 'import json, sys; \
	  [print(p["metadata"]["name"] + "==" + p["metadata"]["version"]) for p in json.load(sys.stdin)["install"]]' | sort -f

clean: ## remove what was built, the environment and the demo's files
	rm -rf build .venv python/weir/_lib demo-run demo-run-tuned demo-run.rules.toml

# The editable install lists the modules: packages that are added or moved decide when to install again.
.venv/demo: tools/requirements.lock pyproject.toml $(wildcard python/weir/*/__init__.py python/weir/*/*/__init__.py) | demo-deps
	@mkdir -p build
	@python=$$(tools/find-python) || { echo "no Python 3.10 or newer with venv: run make install-deps" >&2; exit 1; }; \
	  $(PYTHON) -m pip --version >/dev/null 2>&1 || "$$python" -m venv --clear .venv
	@$(LOCKED) $(PYTHON) -m pip install --quiet --constraint tools/requirements.lock scikit-build-core
	@$(local_install) $(LOCKED) $(PYTHON) -m pip install --quiet --constraint tools/requirements.lock --no-build-isolation --editable .
	@touch $@

.venv/ready: .venv/demo | install-deps
	@$(LOCKED) $(PYTHON) -m pip install --quiet -r tools/requirements.lock
	@touch $@

# Rooms appear with their CMakeLists.txt, so the list of these decides when to configure again.
ROOMS := CMakeLists.txt $(wildcard cmake/*.cmake native/*/CMakeLists.txt workloads/*/CMakeLists.txt bench/CMakeLists.txt)
CONFIGURE := $(LOCKED) cmake -S . -B $(NATIVE) -G Ninja --log-level=WARNING -DCMAKE_BUILD_TYPE=RelWithDebInfo -DWEIR_WERROR=ON
$(STAMPS)/configured: $(ROOMS) | .venv/ready
	@mkdir -p $(STAMPS)
	@$(CONFIGURE) -DWEIR_TESTS=ON
	@touch $@

$(STAMPS)/configured-demo: $(ROOMS) | .venv/demo
	@mkdir -p $(STAMPS)
	@$(CONFIGURE) -DWEIR_TESTS=OFF
	@touch $@
