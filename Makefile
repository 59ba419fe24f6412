# make demo: learn and test on the built-in cart-pole. make test: everything that can fail, should.
# Both work from a fresh clone: they make .venv and install what is needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ifeq ($(OS),Windows_NT)
  BIN := $(VENV)/Scripts
endif
READY := $(VENV)/.ready

.PHONY: demo test lint bench reproduce clean

demo: $(READY)
	$(BIN)/clearloop demo --out runs/demo

test: $(READY)
	$(BIN)/pytest -n auto --dist loadfile

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(READY)
	$(BIN)/python -m benchmarks

reproduce: $(READY)
	$(BIN)/python -m reproductions

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable . --group dev
	@touch $(READY)

clean:
	rm -rf $(VENV) runs
