# SPDX-License-Identifier: MIT
# The front door. CMake does the work; this installs what is missing, configures,
# and names the everyday commands.

BUILD  ?= build
PREFIX ?= /usr/local
JOBS   ?= $(shell nproc)
# Most tests wait more than they compute.
CTEST   = ctest --test-dir $(BUILD) --output-on-failure -j $$((2 * $(JOBS)))

CONFIGURE = cmake -S . -B $(BUILD) -DCMAKE_INSTALL_PREFIX=$(PREFIX) $(CMAKE_FLAGS)

# "make model DEEP=1" goes further, for hours.
export DEEP

.PHONY: all everything run test model fuzz soak bench rivals echo-rivals tidy format format-check install clean deps

# The library and the examples: all that a user needs.
all: deps
	$(CONFIGURE)
	cmake --build $(BUILD) -j $(JOBS) --target weft weft_static weft_examples

# The tests and the benchmarks, too.
everything:
	@tools/deps tests $(DEPS)
	$(CONFIGURE)
	cmake --build $(BUILD) -j $(JOBS)

# Installs missing packages by name, or says how.
deps:
	@tools/deps $(DEPS)

run: all
	$(BUILD)/examples/tour

# The first of three tiers: .ci/run runs more, soak all (tests/tiers.cmake).
test: everything
	$(CTEST) -L 'tier:test$$'

# Every interleaving of the protocols, and the proof that the tests would notice.
model: deps
	$(CONFIGURE)
	cmake --build $(BUILD) -j $(JOBS) --target models
	tests/model/mutants --build $(BUILD)/tests/model --jobs $(JOBS)

# Inputs that are made up, for every parser: "make fuzz SECONDS=600".
fuzz:
	@tools/deps checks
	fuzz/run --seconds $(or $(SECONDS),10)

# Every test in every build, and long runs: millions of tasks, minutes of stress.
soak: everything
	tools/soak $(BUILD)

bench: everything
	$(BUILD)/bench/weft-bench

# ECHO: flags for the second part, else as RIVALS for the first.
rivals: everything
	python3 bench/rivals/run.py --weft $(BUILD)/bench/weft-bench --build $(BUILD)/rivals $(RIVALS)
	$(MAKE) echo-rivals RIVALS="$(ECHO)"

# Echo servers under one load: weft's, those of rivals, and bare loops.
echo-rivals: everything
	python3 bench/echo/run.py --weft $(BUILD)/bench --build $(BUILD)/rivals $(RIVALS)

tidy: everything
	python3 tools/tidy --lib $(BUILD)/libweft.so

format:
	tools/format

format-check:
	tools/format --check

# The libraries alone are built. As root it runs ldconfig; else, or with a DESTDIR, it says so.
install: deps
	$(CONFIGURE)
	cmake --build $(BUILD) -j $(JOBS) --target weft weft_static
	cmake --install $(BUILD)

clean:
	rm -rf $(BUILD)
