# Everything a checkout needs, with Python (3.11 or newer, with its venv module) and make alone.
#   make train    set up .venv, then train PPO on CartPole-v1 for a short budget
#   make test     set up .venv, then run the tests
# The others: test-jax, lint, format, lock, clean. Each can be run again; a set-up that is up to date costs nothing.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP     = $(BIN)/python -m pip --disable-pip-version-check --no-input

# What `make train` runs, and what `make test` hands to pytest: make train TRAIN="--algo sac --env Pendulum-v1 -n 20000"
TRAIN  ?= --algo ppo --env CartPole-v1 -n 50000 --eval-freq 25000 --seed 0
PYTEST ?=
# Processes that run the tests, each with a Ray of its own; 0 for this one alone.
WORKERS ?= 2
# HOSTS=1 runs the tests, too, that make hosts of Linux namespaces; they need root and the Debian packages of .ci/run.
HOSTS ?=

# What the lock file holds: the package, and these extras, with torch at the version of the CPU build.
LOCKED_EXTRAS := atari,bench,box2d,dev,hub,minigrid,mlflow,mujoco,plots,video,wandb
LOCKED_TORCH  := 2.13.0

.PHONY: all setup train test test-jax lint format lock clean
all: test

setup: $(VENV)/.ready

# Two stamps: the package with what it needs, at the versions of the lock, is all that `make train` waits for; then the rest.
$(VENV)/.base: requirements.lock pyproject.toml setup.py
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Python 3.11 or newer is needed: make PYTHON=python3.11 ...")'
	@echo "Setting up $(VENV) at the versions of requirements.lock (once; a minute or more)"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install --quiet --constraint requirements.lock setuptools
	@$(PIP) install --quiet --constraint requirements.lock --no-build-isolation --editable .
	@touch $@

$(VENV)/.ready: $(VENV)/.base
	@echo "Adding the envs, tools and extras of requirements.lock to $(VENV) (once; a minute or more)"
	@$(PIP) install --quiet --requirement requirements.lock
	@touch $@

train: $(VENV)/.base
	@$(BIN)/lit-sb3-ray train $(TRAIN)

# Files in the order of their folders: by its own, pytest-xdist would begin the longest last, which have few tests.
test: $(VENV)/.ready
	@$(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder $(if $(HOSTS),,-m "not hosts") $(PYTEST)

# SBX's algorithms, in an environment of their own beside the locked one: JAX and what comes with it are 160 MB to download, and
# one of its packages is a nightly build, which no lock can hold on to.
test-jax: $(VENV)-jax/.ready
	@$(VENV)-jax/bin/python -m pytest tests/jax/check_sbx.py $(PYTEST)

$(VENV)-jax/.ready: requirements.lock pyproject.toml setup.py
	@echo "Setting up $(VENV)-jax from requirements.lock and the extra jax (once; some minutes)"
	@$(PYTHON) -m venv $(VENV)-jax
	@$(VENV)-jax/bin/python -m pip --disable-pip-version-check --no-input install --quiet --requirement requirements.lock
	@$(VENV)-jax/bin/python -m pip --disable-pip-version-check --no-input install --quiet --no-build-isolation \
	   --constraint requirements.lock --editable '.[jax]'
	@touch $@

lint: $(VENV)/.ready
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

format: $(VENV)/.ready
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

# Made in an environment of its own, so that nothing installed by hand gets in. Local build tags (torch's "+cpu") are dropped,
# and Box2D, of which there is neither a wheel for Linux on ARM nor a source package, is left out there.
BOX2D_HERE := sys_platform != "linux" or platform_machine == "x86_64"
lock:
	@rm -rf build/lock && $(PYTHON) -m venv build/lock
	@build/lock/bin/python -m pip --disable-pip-version-check install --quiet --upgrade pip setuptools
	@build/lock/bin/python -m pip --disable-pip-version-check install --quiet torch==$(LOCKED_TORCH)
	@build/lock/bin/python -m pip --disable-pip-version-check install --quiet ".[$(LOCKED_EXTRAS)]"
	@{ echo "# Made by 'make lock' from pyproject.toml with the extras $(LOCKED_EXTRAS); used by 'make train' and 'make test'."; \
	   build/lock/bin/python -m pip --disable-pip-version-check freeze --all --exclude pip --exclude lit-sb3-ray \
	   | sed -e 's/+[A-Za-z0-9.]*$$//' -e '/^Box2D==/ s/$$/ ; $(BOX2D_HERE)/'; } > build/requirements.lock
	@mv build/requirements.lock requirements.lock
	@rm -rf build
	@echo "requirements.lock: $$(grep -c == requirements.lock) packages"

clean:
	@rm -rf $(VENV) $(VENV)-jax build dist ./*.egg-info .mypy_cache .pytest_cache .ruff_cache
	@find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
