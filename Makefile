# Everything a contributor runs. Needs Python >= 3.11, pip and make; the rest comes into .venv.

PYTHON ?= python3
PY := .venv/bin/python
PIP := -m pip --disable-pip-version-check -qq
STAMP := .venv/.installed

# A virtual environment that was copied or moved here runs the other folder's code: make it anew.
HERE := $(shell grep -qsF ' $(CURDIR)/.venv' .venv/pyvenv.cfg && $(PY) -c '' 2>/dev/null && echo yes)

.DEFAULT_GOAL := help
.PHONY: help venv demo test test-all mutants format lock clean FORCE

help: ## list these targets
	@sed -n 's/^\([a-z-]*\):.*## /  make \1|/p' Makefile | awk -F'|' '{ printf "%-18s %s\n", $$1, $$2 }'

venv: $(STAMP) ## make .venv with the pinned packages and toolgen itself, editable
	@:

$(STAMP): requirements.lock pyproject.toml $(if $(HERE),,FORCE)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "toolgen needs Python 3.11 or newer; name one: make PYTHON=python3.12 ...")'
	@echo "installing the pinned packages into .venv"
	@$(PYTHON) -m venv $(if $(HERE),,--clear) .venv
	@$(PY) $(PIP) install -r requirements.lock
	@$(PY) $(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

demo: venv ## generate tools from the sample API, check what its approvals do to them, show one call and make one
	@mkdir -p build
	.venv/bin/toolgen generate samples/petstore/petstore.yaml -o build/petstore.tools.yaml
	.venv/bin/toolgen show build/petstore.tools.yaml updatePet
	.venv/bin/toolgen check samples/petstore/approvals.yaml --tools build/petstore.tools.yaml
	.venv/bin/toolgen call build/petstore.tools.yaml updatePet --args '{"petId": "7", "requestBody": {"price": 95}}' \
	  --approvals samples/petstore/approvals.yaml --credential 'bearerAuth=$${env:SHOP_TOKEN}' --dry-run
	SHOP_TOKEN=any-token $(PY) samples/petstore/server.py --run \
	  '.venv/bin/toolgen call build/petstore.tools.yaml getPet --args "{\"petId\": \"7\"}" \
	  --server "$$PETSTORE" --credential "bearerAuth=\$${env:SHOP_TOKEN}"'

# Each core runs tests, and what Python compiles is kept, whatever the shell says.
test: export PYTHONDONTWRITEBYTECODE =
test: venv ## check style, types and imports, then run the tests (not the slow ones)
	@$(PY) -m ruff check --quiet .
	@$(PY) -m ruff format --quiet --check .
	@$(PY) -m mypy --strict --no-error-summary toolgen
	@report=$$(.venv/bin/lint-imports --no-logo 2>&1) || { echo "$$report"; exit 1; }
	@$(PY) -m pytest -m "not slow" -n auto --dist worksteal

test-all: venv ## run the slow tests: what needs the network, npm or minutes
	@$(PY) -m pytest -m slow || { code=$$?; test $$code -eq 5 && echo "there are no slow tests"; }

mutants: venv ## change the policy code in every way mutmut knows, and list what no test notices (takes long)
	@CI=true .venv/bin/mutmut run
	@.venv/bin/mutmut results

format: venv ## rewrite the code in the house format
	@$(PY) -m ruff check --quiet --fix .
	@$(PY) -m ruff format --quiet .

# Made with the oldest supported Python, whose set contains every backport the newer ones leave out.
lock: ## pin the newest allowed versions anew in requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11) and "make the lock with the oldest supported Python: make lock PYTHON=python3.11")'
	@mkdir -p build
	@$(PYTHON) -m venv --clear build/lock-venv
	@build/lock-venv/bin/python $(PIP) install --upgrade pip
	@build/lock-venv/bin/python $(PIP) install -e '.[all]' --group dev
	@{ echo "# What 'make venv' installs, exactly. Written by 'make lock': do not edit."; \
	   build/lock-venv/bin/python -m pip --disable-pip-version-check freeze --exclude-editable --exclude setuptools; \
	 } > build/requirements.lock
	@mv build/requirements.lock requirements.lock
	@rm -rf build/lock-venv

clean: ## remove what was built and cached (.venv stays; rm -r .venv to be rid of it)
	@rm -rf build dist mutants .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache *.egg-info
	@find . -name __pycache__ -type d -not -path './.venv/*' -prune -exec rm -rf {} +
