# What a newcomer types. Each target does its own set-up; nothing has to be installed first but make and Python.
# As root, missing packages are installed with apt-get; as an ordinary user the line to run is printed.

# The real path: as root, .venv may be a link out of a folder that only root may enter.
BIN = "$$(readlink -f .venv)/bin"
ARGS =
# Where it is set, each program that a test starts compiles up to 400 modules again, and each pytest all tests.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup install uninstall on-path man dist bundle sbom release demo check test test-slurm test-launchers test-skypilot test-extras test-install coverage bench soak faults lint audit format pins pictures readme evals docs clean

help:
	@echo 'make install  the command for your user: PREFIX=~/.local has share/slurm-agent-tools and bin'
	@echo 'make uninstall  take away what make install put there, with the same PREFIX'
	@echo 'make man      the manual pages, in build/man (make install brings them along)'
	@echo 'make dist     wheel, source distribution, bundle and bill of materials, in dist'
	@echo 'make bundle   the MCPB bundle for Claude Desktop, in dist'
	@echo 'make sbom     what an installation consists of, as CycloneDX, in dist'
	@echo 'make release  is this tree ready to be released: version, changelog, tag'
	@echo 'make demo     show the whole way on a private Slurm'
	@echo 'make check    for every day: lint, and every test that needs no Slurm (about 5 minutes on two cores)'
	@echo 'make test     run every test (20 to 25 minutes on two cores; some of them: ARGS="-k name")'
	@echo 'make test-slurm   the tests that meet Slurm, on newer versions of it (SLURMS="24.11 26.05")'
	@echo 'make test-launchers   generated scripts with torchrun, accelerate, deepspeed and MPI on two nodes (installs 6 GB)'
	@echo 'make test-skypilot     SkyPilot reads the task files that are written for it (installs 460 MB)'
	@echo 'make test-extras   what the optional extras add: Optuna, OR-tools, LightGBM (installs 600 MB)'
	@echo 'make test-install  wheel, pip, pipx, uv, bundle and images as users install them, with the real tools'
	@echo 'make coverage which lines the tests without a Slurm run; fails below the limits of pyproject.toml'
	@echo 'make bench    measure times beside their references (some of them: ARGS="start cli")'
	@echo 'make evals    play the 25 evaluation tasks on a private Slurm (some of them: ARGS="train sweep")'
	@echo 'make soak     the long runs: races, fuzzing, random requests against a real Slurm (about two hours)'
	@echo 'make faults   put small faults in by chance and see whether unit tests notice (ARGS="--seed 2")'
	@echo 'make lint     formatting, lint, types, import rules'
	@echo 'make audit    are all packages pinned, licensed, and free of known holes'
	@echo 'make format   format the code'
	@echo 'make pins     take the newest allowed versions into pyproject.toml and requirements.txt'
	@echo 'make pictures take the pictures of the dashboard in docs/images, of a private Slurm'
	@echo 'make readme   run the demo and put its output and its moving picture into the documentation'
	@echo 'make docs     build the site of the documentation, strictly, in build/site (installs 140 MB)'
	@echo 'make clean    remove the environment and everything that was built'

# What the machine itself needs for the targets that were asked for, all of it looked for before anything is installed.
NEEDED_check = login lua
NEEDED_coverage = login lua
NEEDED_faults = login lua
NEEDED_demo = cluster accounting
NEEDED_readme = cluster accounting
NEEDED_pictures = cluster accounting browser
NEEDED_test = cluster accounting login traces pbs metrics browser lua shells units
NEEDED_test-install = shells lua
NEEDED_soak = cluster accounting login lua
NEEDED_evals = cluster accounting login
NEEDED_test-slurm = cluster accounting login release
NEEDED_test-launchers = cluster accounting launchers
NEEDED = $(sort $(foreach target,$(MAKECMDGOALS),$(NEEDED_$(target))))

setup:
	@sh scripts/setup.sh $(NEEDED)

# For a user's own folders, with the packages that are pinned and checked by their hashes. No developers' tools.
PREFIX = $(HOME)/.local
PYTHON = python3
OWN = $(PREFIX)/share/slurm-agent-tools
install:
	@echo 'Installing slurm-agent-tools for you into $(OWN): its packages are fetched and checked by their hashes, about a minute.'
	$(PYTHON) -m venv --clear "$(OWN)"
	"$(OWN)/bin/python" -m pip install -qq --require-hashes -r requirements-run.txt
	"$(OWN)/bin/python" -m pip install -qq --no-index --no-deps --no-build-isolation .
	mkdir -p "$(PREFIX)/bin"
	ln -sf "$(OWN)/bin/slurm-agent-tools" "$(PREFIX)/bin/slurm-agent-tools"
	"$(OWN)/bin/python" scripts/man.py "$(PREFIX)/share/man"
	mkdir -p "$(PREFIX)/share/bash-completion/completions" "$(PREFIX)/share/zsh/site-functions" "$(PREFIX)/share/fish/vendor_completions.d"
	"$(OWN)/bin/python" -m slurm_agent_tools completion bash >"$(PREFIX)/share/bash-completion/completions/slurm-agent-tools"
	"$(OWN)/bin/python" -m slurm_agent_tools completion zsh >"$(PREFIX)/share/zsh/site-functions/_slurm-agent-tools"
	"$(OWN)/bin/python" -m slurm_agent_tools completion fish >"$(PREFIX)/share/fish/vendor_completions.d/slurm-agent-tools.fish"
	@$(MAKE) --no-print-directory on-path

# Only what `make install` made: an environment of ours, the link to it, pages and completion, and folders left empty.
# Settings and records stay, and so do PREFIX/bin and PREFIX/share.
uninstall:
	@test -f "$(OWN)/pyvenv.cfg" && test -f "$(OWN)/bin/slurm-agent-tools" && ! test -L "$(OWN)" || { \
	  echo 'Nothing was removed: make install put nothing into $(OWN). Name the PREFIX of the installation.' >&2; exit 1; }
	@test "$$(readlink "$(PREFIX)/bin/slurm-agent-tools")" != "$(OWN)/bin/slurm-agent-tools" || rm "$(PREFIX)/bin/slurm-agent-tools"
	@rm -f "$(PREFIX)"/share/man/man1/slurm-agent-tools.1 "$(PREFIX)"/share/man/man1/slurm-agent-tools-*.1
	@cd "$(PREFIX)/share" && rm -f bash-completion/completions/slurm-agent-tools zsh/site-functions/_slurm-agent-tools \
	  fish/vendor_completions.d/slurm-agent-tools.fish
	@rm -r "$(OWN)"
	@cd "$(PREFIX)/share" && for folder in man/man1 bash-completion/completions zsh/site-functions fish/vendor_completions.d; do \
	  rmdir "$$folder" 2>/dev/null && rmdir "$${folder%/*}" 2>/dev/null || true; done
	@echo 'Removed from $(PREFIX): slurm-agent-tools. What it leaves is yours: docs/guides/uninstalling.md'

# Where it is; a login that began before the folder was there does not look in it.
on-path:
	@case ":$$PATH:" in *":$(PREFIX)/bin:"*) echo 'Installed: $(PREFIX)/bin/slurm-agent-tools. Next: slurm-agent-tools' ;; *) \
	  echo 'Installed: slurm-agent-tools is in $(PREFIX)/bin, which is not on the PATH of this terminal: export PATH="$(PREFIX)/bin:$$PATH"' ;; \
	esac

man: setup
	@$(BIN)/python scripts/man.py

dist: setup bundle sbom
	@$(BIN)/python -m hatchling build -d dist

bundle: setup
	@$(BIN)/python scripts/bundle.py

sbom: setup
	@$(BIN)/python scripts/sbom.py

# Changes nothing: says what is missing, or the commands that come next.
release: setup
	@$(BIN)/python scripts/release.py $(ARGS)

demo: setup
	@$(BIN)/python -m slurm_agent_tools demo --yes

check: setup
	$(BIN)/python scripts/test.py --check -q $(ARGS)

test: setup
	$(BIN)/python scripts/test.py $(ARGS)

# The tests that meet Slurm, on each newer version; `make test` has the distribution's own.
SLURMS = 24.11 26.05
MEETING = fates guard waiting limits swap drift allocations approvals outages devcluster cgroups reading_against_slurm rate_limit alerts failures before scenarios evals tickets
MEETING += floor floor_red_team ticket_extras
test-slurm: setup
	@failed=0; for version in $(SLURMS); do \
	  echo "Slurm $$version"; \
	  SLURM_AGENT_TEST_SLURM=$$version $(BIN)/python -m pytest $(MEETING:%=tests/system/test_%.py) $(ARGS) || failed=1; \
	done; exit $$failed

# What starts distributed jobs, for real; it has an environment of its own in /var/tmp.
test-launchers: setup
	$(BIN)/python -m pytest tests/launchers $(ARGS)

# SkyPilot's own reading of its files; it has an environment of its own in /var/tmp.
test-skypilot: setup
	$(BIN)/python -m pytest tests/skypilot $(ARGS)

test-extras: setup
	$(BIN)/python -m pytest tests/optuna tests/extras $(ARGS)

# As users install it: pip, pipx, uv and the bundle, each into an environment of its own; and the files of a release.
# As root also all of these, and the tutorial, in a bare system that has Python and nothing else.
test-install: setup
	SLURM_AGENT_TEST_BARE=yes $(BIN)/python -m pytest tests/install $(ARGS)

# Lines that tests without a Slurm run, by module and by room.
coverage: setup
	$(BIN)/python scripts/covered.py $(ARGS)

# Our times beside their references, as ratios; fails when one is over its limit. Some of them: ARGS="start cli".
bench: setup
	$(BIN)/python -m compileall -q src
	$(BIN)/python -m benchmarks.run $(ARGS)

# What an agent can be asked to do, by recorded solutions: whether it is done, in how many calls and bytes.
evals: setup
	$(BIN)/python -m evals.run $(ARGS)

# How long the long runs are; `make test` runs a short form of each.
soak: export SOAK = 1
soak: export SOAK_ROUNDS ?= 200
soak: export SOAK_SECONDS ?= 600
soak: setup
	$(BIN)/python -m pytest -s tests/soak tests/fuzz tests/system/test_reading_against_slurm.py tests/system/test_scale.py \
		tests/system/test_crashes.py tests/system/test_tickets.py tests/system/test_connect.py tests/system/faults $(ARGS)

# Other faults: ARGS="--seed 2"; some of them again: ARGS="--only 3 17".
faults: setup
	$(BIN)/python scripts/faults.py $(ARGS)

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

audit: setup
	$(BIN)/python scripts/audit.py

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

pins: setup
	$(BIN)/python scripts/pins.py
	@sh scripts/setup.sh

pictures: setup
	$(BIN)/python -m tests.system.pictures

readme: setup
	$(BIN)/python scripts/readme.py

# With other versions of the site beside it: ARGS="--into FOLDER".
docs: setup
	@$(BIN)/python scripts/docs_site.py $(ARGS)

clean:
	@rm -rf "$$(readlink -f .venv)" .venv tests/conformance/node_modules tests/memory/.venv build dist
	@rm -rf .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .grimp_cache .hypothesis
	@rmdir /var/tmp/slurm-agent-tools 2>/dev/null || true
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
