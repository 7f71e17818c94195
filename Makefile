# make run     install what the app needs and start it; make run OPEN=PATH: with a checkpoint of yours open
# make test    the tests of the daily loop; make test ROOM=lens: those of one room or folder
# make check   formatting, lint, types and every test: run it before you submit
# make bench   timings against other libraries
# make faults  kill servers and workers, fill disks, and write docs/faults.md
# make pins    ask the package indexes whether they still offer what is pinned
# make sbom    list all installed packages, their versions and licenses as CycloneDX JSON
# make fuzz MINUTES=30   search for input that breaks a reader

VENV := .venv
PYTHON := $(VENV)/bin/python
PORT ?= 8501
MINUTES ?= 10
# Processes take files in the order that tests/conftest.py gives them: three, for two processors (browser tests wait).
SHARED := -n 3 --dist loadfile --no-loadscope-reorder
PIP := $(PYTHON) -m pip install --quiet --disable-pip-version-check
DAILY := not (cluster or faults or scan or fuzz or crowd or servers)
# A room's tests and its page's; else a folder of tests.
TESTS = $(or $(wildcard tests/analyses/$(ROOM) tests/app/test_$(ROOM).py),tests/$(ROOM))

.PHONY: run test check every lint bench faults fuzz pins sbom clean

run: $(VENV)/run.stamp
	$(PYTHON) $(if $(OPEN),-m inspector serve "$(OPEN)" --port,-m streamlit run app.py --server.port) $(PORT)

test: $(VENV)/dev.stamp
	scripts/chromium
	$(PYTHON) -m pytest $(if $(ROOM),$(TESTS),$(SHARED) -m "$(DAILY)")

lint: $(VENV)/dev.stamp
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m ruff check .
	$(PYTHON) -m pyright

# Side by side: the type checker uses one processor, and the tests wait for one now and then.
check:
	$(MAKE) --jobs=2 lint every

every: $(VENV)/dev.stamp
	scripts/chromium
	$(PYTHON) -m pytest $(SHARED)

bench: $(VENV)/dev.stamp
	scripts/chromium
	$(PYTHON) -m tools.bench

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

# In CI by hashes, but for torch: pip would rather have its CUDA build, whose hash its index tells, than one for CPUs.
$(VENV)/run.stamp: requirements.txt requirements-hashes.txt | $(VENV)/bin/python
	$(if $(CI),$(PIP) --no-deps $(shell grep ^torch== requirements.txt))
	$(if $(CI),$(PIP) --no-deps --require-hashes -r requirements-hashes.txt)
	$(PIP) -r requirements.txt
	touch $@

$(VENV)/dev.stamp: requirements-dev.txt requirements-auth.txt requirements-ray.txt $(VENV)/run.stamp
	$(PIP) -r requirements-dev.txt
	touch $@
