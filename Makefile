# Everything is done in a virtual environment of its own; `make` alone lists the targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
CACHES := .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .coverage .coverage.* staticfiles
TEST := $(BIN)/python -m config.embedded run --var var/test -- $(BIN)/python -m pytest
PIN := --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --quiet --upgrade

each-var = for var in "$${PACELINE_VAR:-var}" var/test var/bench; do $(BIN)/python -m config.embedded $(1) --var "$$var" || exit; done

.DEFAULT_GOAL := help
.PHONY: help run test coverage lint format bench soak demo setup lock clean clean-data FORCE

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' $(firstword $(MAKEFILE_LIST)) | awk -F '|' '{ printf "  make %-11s %s\n", $$1, $$2 }'

run: $(INSTALLED) ## start Paceline here, with its own servers; PORT=8010 and SANDBOX_PORT=8090 choose ports
	@$(BIN)/python -m config.run

test: $(INSTALLED) ## run every test; ARGS="-k window" for some
	@$(TEST) -n 3 --dist loadgroup -m "not soak" $(ARGS)

coverage: $(INSTALLED) ## run every test, and list the lines that none of them reached
	@$(TEST) -n 2 --dist loadgroup -m "not soak" --cov --cov-report=term-missing:skip-covered $(ARGS)

lint: export DEBUG := true
lint: export PACELINE_VAR := var/test
lint: $(INSTALLED) ## check style, types, imports, templates and migrations
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy .
	@$(BIN)/lint-imports
	@find templates -name '*.html' -exec $(BIN)/djade --check --target-version 5.2 {} +
	@$(BIN)/python manage.py makemigrations --check --dry-run

audit: $(INSTALLED) ## list the packages (an SBOM), and look for known vulnerabilities
	@BIN=$(BIN) .ci/audit

format: $(INSTALLED) ## rewrite code and templates in the one style
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .
	@find templates -name '*.html' -exec $(BIN)/djade --target-version 5.2 {} +

bench: $(INSTALLED) ## measure the numbers that docs/ promises; ARGS="pacing" for one
	@$(BIN)/python -m config.embedded run --var var/bench -- $(BIN)/python -m benchmarks $(or $(ARGS),all)

soak: $(INSTALLED) ## run the long tests
	@$(TEST) -m soak $(ARGS)

demo: $(INSTALLED) ## make the demo operator, accounts and reminder, without starting Paceline
	@$(BIN)/python -m config.run demo

setup: $(INSTALLED) ## install the packages into .venv, as every other target does when needed, and the command paceline
	@printf '#!%s\nimport sys\n\nsys.path.insert(0, "%s")\nfrom client.main import main\n\nsys.exit(main())\n' "$(CURDIR)/$(BIN)/python" "$(CURDIR)" > $(BIN)/paceline
	@chmod +x $(BIN)/paceline
	@echo "The packages are installed. $(BIN)/paceline is the command line client."

lock: ## pin the newest packages that fit pyproject.toml
	@command -v uv >/dev/null || { echo "uv is missing: install it with 'pip install uv'."; exit 1; }
	@uv pip compile pyproject.toml $(PIN) --output-file requirements.txt
	@uv pip compile pyproject.toml $(PIN) --group dev --output-file requirements-dev.txt
	@echo matrix-synapse | uv pip compile - $(PIN) --output-file requirements-synapse.txt

clean: ## stop what was left running and delete .venv and caches; data stays
	@if [ -x $(BIN)/python ]; then $(call each-var,stop); fi
	@rm -rf $(VENV) $(CACHES)
	@find . -name __pycache__ -not -path './var/*' -prune -exec rm -rf {} +

clean-data: $(INSTALLED) ## delete the data too, after asking
	@printf 'Delete all data of this checkout? Type yes: '; read answer; [ "$$answer" = yes ] || { echo "Nothing deleted."; exit 1; }
	@$(call each-var,stop)
	@$(call each-var,erase)

# A checkout that was moved or copied has an environment whose programs point elsewhere: it is made anew.
ifneq ($(shell cat $(INSTALLED) 2>/dev/null),$(CURDIR))
$(INSTALLED): FORCE
endif

$(INSTALLED): requirements-dev.txt
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) is missing: install Python 3.11 or newer, or name it: make PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Paceline needs Python 3.11 or newer and this is %d.%d: name another, as in: make PYTHON=python3.12" % sys.version_info[:2])'
	@echo "Installing the packages of requirements-dev.txt into $(VENV); this takes a minute or two, once."
	@grep -qsF "$(CURDIR)/$(VENV)/bin" $(BIN)/pip || $(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements-dev.txt
	@printf '%s' "$(CURDIR)" > $(INSTALLED)
