# make demo: learn and test on the built-in cart-pole. make test: everything that can fail, should.
# make docs: the site, in site/. All work from a fresh clone: they make .venv and install what requirements/ names, version by version.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ifeq ($(OS),Windows_NT)
  BIN := $(VENV)/Scripts
endif
READY := $(VENV)/.ready
READY_DEV := $(VENV)/.ready-dev
PIP := $(BIN)/python -m pip --disable-pip-version-check
# Wheels only: a source package would fetch tools to build it that no file names.
INSTALL := $(PIP) install --quiet --require-hashes --only-binary :all: --requirement

.PHONY: demo test lint docs bench reproduce lock clean

demo: $(READY)
	$(BIN)/clearloop demo --out runs/demo

test: $(READY_DEV)
	$(BIN)/pytest -n auto --dist loadfile --no-loadscope-reorder

lint: $(READY_DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(READY_DEV)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo "The site is in site/: open site/index.html"

bench: $(READY_DEV)
	$(BIN)/python -m benchmarks

reproduce: $(READY)
	$(BIN)/python -m reproductions

$(READY): pyproject.toml requirements/demo.txt
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) requirements/demo.txt
	$(PIP) install --quiet --no-deps --no-build-isolation --editable .
	@touch $(READY)

# The checker of accessibility comes from npm. Without npm its tests are skipped, and in CI they fail.
AXE := requirements/axe
# The Industrial Benchmark needs an old NumPy, and so an environment of its own. What else its package asks for, gym,
# only a part needs that is not used. Where it cannot be installed its tests are skipped, and in CI they fail.
INDUSTRIAL := $(VENV)/industrial
INSTALL_INDUSTRIAL := $(subst $(BIN),$(INDUSTRIAL)/$(notdir $(BIN)),$(INSTALL)) requirements/industrial.txt --no-deps
$(READY_DEV): $(READY) requirements/dev.txt requirements/industrial.txt $(AXE)/package-lock.json
	$(INSTALL) requirements/dev.txt
	$(PYTHON) -m venv $(INDUSTRIAL) && $(INSTALL_INDUSTRIAL) || echo "the Industrial Benchmark is missing"
	if command -v npm > /dev/null; then npm ci --prefix $(AXE) --ignore-scripts --no-audit --no-fund --silent || echo "axe-core is missing"; fi
	@touch $(READY_DEV)

# Renew the exact versions within the ranges of pyproject.toml. One file serves every Python and system.
# uv has an environment of its own, so this works where the old versions cannot be installed.
LOCK := $(VENV)/lock
COMPILE := $(LOCK)/$(notdir $(BIN))/uv --no-config pip compile --quiet --upgrade --universal --python-version 3.11 \
  --fork-strategy fewest --only-binary :all: --generate-hashes --no-annotate --custom-compile-command "make lock"

lock:
	$(PYTHON) -m venv $(LOCK)
	$(LOCK)/$(notdir $(BIN))/python -m pip install --quiet --upgrade uv
	$(COMPILE) pyproject.toml --group build --output-file requirements/demo.txt
	$(COMPILE) pyproject.toml --group dev --constraints requirements/demo.txt --output-file requirements/dev.txt
	printf '%s\n' industrial-benchmark-python 'numpy<2' 'scipy<1.14' | \
	  $(COMPILE) --no-deps --output-file requirements/industrial.txt -

clean:
	rm -rf $(VENV) $(AXE)/node_modules runs site
