# SPDX-License-Identifier: MIT
# Shortcuts for the everyday commands. CMake does the work. This file installs missing packages
# and configures the build.

BUILD  ?= build
PREFIX ?= /usr/local
JOBS   ?= $(shell nproc)
# Most tests wait more than they compute.
CTEST   = ctest --test-dir $(BUILD) --output-on-failure -j $$((2 * $(JOBS)))

CONFIGURE = cmake -S . -B $(BUILD) -DCMAKE_INSTALL_PREFIX=$(PREFIX) $(CMAKE_FLAGS)

# "make model DEEP=1" explores further and runs for hours.
export DEEP

.PHONY: all everything run test model fuzz soak bench rivals echo-rivals tidy format format-check install clean deps

# The library and the examples: everything that a user needs.
all: deps
	$(CONFIGURE)
	cmake --build $(BUILD) -j $(JOBS) --target weft weft_static weft_examples

# Also the tests and the benchmarks.
everything:
	@tools/deps tests $(DEPS)
	$(CONFIGURE)
	cmake --build $(BUILD) -j $(JOBS)

# Installs missing packages, or prints the command that does.
deps:
	@tools/deps $(DEPS)

run: all
	$(BUILD)/examples/tour

# The first of three tiers: .ci/run runs more tests, soak runs all of them (tests/tiers.cmake).
test: everything
	$(CTEST) -L 'tier:test$$'

# Explores every interleaving of the protocols, and checks with mutants that the tests detect
# errors.
model: deps
	$(CONFIGURE)
	cmake --build $(BUILD) -j $(JOBS) --target models
	tests/model/mutants --build $(BUILD)/tests/model --jobs $(JOBS)

# Generated inputs for every parser: "make fuzz SECONDS=600".
fuzz:
	@tools/deps checks
	fuzz/run --seconds $(or $(SECONDS),10)

# Every test in every build, and long runs: millions of tasks, minutes of stress.
soak: everything
	tools/soak $(BUILD)

bench: everything
	$(BUILD)/bench/weft-bench

# ECHO: flags for the second part, as RIVALS is for the first.
rivals: everything
	python3 bench/rivals/run.py --weft $(BUILD)/bench/weft-bench --build $(BUILD)/rivals $(RIVALS)
	$(MAKE) echo-rivals RIVALS="$(ECHO)"

# Echo servers under the same load: weft's, those of the rivals, and bare loops.
echo-rivals: everything
	python3 bench/echo/run.py --weft $(BUILD)/bench --build $(BUILD)/rivals $(RIVALS)

tidy: everything
	python3 tools/tidy --lib $(BUILD)/libweft.so

format:
	tools/format

format-check:
	tools/format --check

# Builds only the libraries. As root it runs ldconfig; otherwise, or with a DESTDIR, it prints a
# reminder.
install: deps
	$(CONFIGURE)
	cmake --build $(BUILD) -j $(JOBS) --target weft weft_static
	cmake --install $(BUILD)

clean:
	rm -rf $(BUILD)
