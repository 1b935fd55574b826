# Everything from a bare machine with Python 3.11 or later and make; `make` alone lists the targets.
PYTHON ?= python3
PORT ?= 8800
ADMIN_PORT ?= 8801
UPSTREAM ?=
ARGS ?=
UPGRADE ?=
OPERATIONS ?= 100000
EXAMPLES ?= 20
WORKERS ?= 2
SECONDS ?= 60
SEED ?= $(shell date +%s)

VENV := .venv
BIN := $(VENV)/bin
LOCK := configs/lock
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# Extras stay named in the locks: pip before 23.3 does not see that `name==1` pins `name[extra]`.
COMPILE = .parts/uv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-strip-extras \
	--no-emit-index-url --custom-compile-command "make lock" $(if $(UPGRADE),--upgrade)

.DEFAULT_GOAL := help
.PHONY: help run test test-quick test-all soak bench-prefix quality lint docs parts lock clean
.DELETE_ON_ERROR:

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(firstword $(MAKEFILE_LIST)) | sed -E 's/^([a-z-]+):.*## /  make \1|/' \
		| awk -F'|' '{ printf "%-20s %s\n", $$1, $$2 }'

run: $(VENV)/run.stamp ## start the proxy before UPSTREAM=http://…, or before a small real model that it installs
ifeq ($(strip $(UPSTREAM)),)
	@$(BIN)/python -m tests.parts.demo --port $(PORT) --admin-port $(ADMIN_PORT)
else
	@$(BIN)/cacheproxy serve --upstream $(UPSTREAM) --port $(PORT) --admin-port $(ADMIN_PORT) $(ARGS)
endif

test: lint parts ## lint, then every test, with the real engine, Redis and clients
	$(BIN)/python -m tests.again -n $(WORKERS) --dist loadfile $(ARGS)

test-quick: $(VENV)/dev.stamp ## the tests that need neither engine nor clients nor Redis nor a network
	$(BIN)/pytest -n $(WORKERS) --dist loadfile -m "not engine and not clients and not redis" --ignore=tests/test_image.py \
		$(ARGS)

test-all: test soak ## every test, then the long runs

soak: $(VENV)/dev.stamp ## the tests that draw at random, for long: OPERATIONS=, EXAMPLES= times the usual, SECONDS=, SEED=
	CACHEPROXY_OPERATIONS=$(OPERATIONS) CACHEPROXY_EXAMPLES=$(EXAMPLES) CACHEPROXY_SECONDS=$(SECONDS) CACHEPROXY_SEED=$(SEED) \
		$(BIN)/pytest --timeout=0 $$(grep -rl --include='test_*.py' tests.examples tests) $(ARGS)

bench-prefix: $(VENV)/dev.stamp ## time to first token by what stands in the system prompt, before a real engine; ARGS="--layers 0"
	$(BIN)/python -m tests.bench.prefix $(ARGS)
	$(BIN)/python -m tests.bench.prefix_rules

quality: parts ## how good answers by meaning are, by labelled sets; ARGS=FILE.jsonl, ARGS=--write for docs/quality.md
	@$(BIN)/python -m tests.quality $(ARGS)

lint: $(VENV)/dev.stamp ## style, types and the layers of imports
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/dev.stamp ## write the generated pages of docs/
	$(BIN)/python docs/generate.py

parts: $(VENV)/dev.stamp ## install the real engine, Redis and clients into .parts/
	@$(BIN)/python -m tests.parts

lock: $(VENV)/run.stamp ## write the lock files anew; UPGRADE=1 takes the newest releases
	@$(BIN)/python -c 'from tests.parts.place import python_part; python_part("uv")'
	$(COMPILE) --extra fast --extra semantic pyproject.toml -o $(LOCK)/requirements.txt
	$(COMPILE) --extra fast --extra semantic --group dev -c $(LOCK)/requirements.txt pyproject.toml -o $(LOCK)/dev.txt
	$(COMPILE) $(LOCK)/build.in -o $(LOCK)/build.txt
	for part in engine openai langchain litellm pydantic_ai trustme uv; do $(COMPILE) tests/parts/$$part.in -o tests/parts/$$part.txt || exit 1; done
	for part in redis weights; do $(COMPILE) --no-deps tests/parts/$$part.in -o tests/parts/$$part.txt || exit 1; done

clean: ## remove everything that was installed or made
	rm -rf $(VENV) .parts build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps: what is installed is as new as what it was installed from.
$(VENV)/made.stamp:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python 3.11 or later is needed; say make PYTHON=/path/to/it."; exit 1; }
	@echo "making $(VENV) ..."
	@$(PYTHON) -m venv $(VENV) || { echo "Python's venv module is needed (Debian: apt-get install python3-venv)."; exit 1; }
	@touch $@

$(VENV)/run.stamp: $(VENV)/made.stamp $(LOCK)/build.txt $(LOCK)/requirements.txt pyproject.toml
	@echo "installing the project ..."
	@$(PIP) --require-hashes -r $(LOCK)/build.txt -r $(LOCK)/requirements.txt
	@$(PIP) --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/dev.stamp: $(VENV)/run.stamp $(LOCK)/dev.txt
	@echo "installing what the tests need ..."
	@$(PIP) --require-hashes -r $(LOCK)/dev.txt
	@touch $@
