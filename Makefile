# make run     install the requirements and start the app; make run OPEN=PATH opens your own checkpoint, PORT=9000 chooses a port
# make test    run the everyday tests; make test ROOM=lens runs those of one room or folder
# make rest    run what make test leaves out
# make check   check formatting, lint and types, and run every test: before you submit
# make dist    build the wheel and the source archive into dist/
# make bench   measure timings against other libraries
# make look    take every page's first screen in light and dark, and lay them out on a sheet in screenshots/
# make faults  kill servers and workers, fill disks, and write docs/faults.md
# make pins    check that the package indexes still offer every pinned version
# make sbom    list all installed packages, their versions and licenses as CycloneDX JSON
# make fuzz MINUTES=30   fuzz the readers of uploads

VENV := .venv
PYTHON := $(VENV)/bin/python
MINUTES ?= 10
# Three processes take files in the order that tests/conftest.py sets: more than two processors, as browser tests wait.
SHARED := -n 3 --dist loadfile --no-loadscope-reorder
PIP := $(PYTHON) -m pip install --quiet --disable-pip-version-check
MARKED := alone or cluster or faults or scan or fuzz or crowd or compiling or families or printed or browser
DAILY := not ($(MARKED))
# The tests of a room and its page, or a folder of tests.
TESTS = $(or $(wildcard tests/analyses/$(ROOM) tests/app/test_$(ROOM).py),tests/$(ROOM))

# The tests start hundreds of processes: each would compile all modules again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: run test rest check every lint dist bench look faults fuzz pins sbom clean

run: $(VENV)/run.stamp
	$(PYTHON) -m inspector serve $(if $(OPEN),"$(OPEN)") $(if $(PORT),--port $(PORT))

test: $(VENV)/dev.stamp
	scripts/chromium
	$(PYTHON) -m pytest $(if $(ROOM),$(TESTS),$(SHARED) -m "$(DAILY)")

rest: $(VENV)/dev.stamp
	scripts/chromium
	$(PYTHON) -m pytest $(SHARED) -m "$(MARKED)"

lint: $(VENV)/dev.stamp
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m ruff check .
	$(PYTHON) -m pyright

# In parallel: the type checker uses one processor, and the tests are sometimes idle.
check:
	$(MAKE) --jobs=2 lint every

every: $(VENV)/dev.stamp
	scripts/chromium
	$(PYTHON) -m pytest $(SHARED)

dist: $(VENV)/dev.stamp
	$(PYTHON) -m hatchling build --clean --directory dist

bench: $(VENV)/dev.stamp
	scripts/chromium
	$(PYTHON) -m tools.bench

look: $(VENV)/dev.stamp
	scripts/chromium
	$(PYTHON) -m tools.look

faults: $(VENV)/dev.stamp
	scripts/chromium
	$(PYTHON) -m tools.faults

fuzz: $(VENV)/dev.stamp
	$(PYTHON) -m tools.fuzz --minutes $(MINUTES)

pins: $(VENV)/dev.stamp
	$(PYTHON) -m tools.pins

sbom: $(VENV)/run.stamp
	@$(PYTHON) -m tools.sbom

clean:
	rm -rf $(VENV)

$(VENV)/bin/python:
	scripts/venv $(VENV)

# CI verifies hashes, except for torch: with its hash, pip would install the CUDA build instead of the CPU build.
$(VENV)/run.stamp: requirements.txt requirements-hashes.txt | $(VENV)/bin/python
	$(if $(CI),$(PIP) --no-deps $(shell grep ^torch== requirements.txt))
	$(if $(CI),$(PIP) --no-deps --require-hashes -r requirements-hashes.txt)
	$(PIP) -r requirements.txt
	touch $@

$(VENV)/dev.stamp: requirements-dev.txt requirements-auth.txt requirements-ray.txt requirements-metrics.txt $(VENV)/run.stamp
	$(PIP) -r requirements-dev.txt
	touch $@
