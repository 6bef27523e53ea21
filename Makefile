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

.PHONY: all run test model fuzz soak bench rivals echo-rivals tidy format format-check install clean deps

all: deps
	$(CONFIGURE)
	cmake --build $(BUILD) -j $(JOBS)

# Installs missing packages by name, or says how.
deps:
	@tools/deps $(DEPS)

run: all
	$(BUILD)/examples/tour

test: all
	$(CTEST)

# Every interleaving of the protocols, and the proof that the tests would notice.
model: deps
	$(CONFIGURE)
	cmake --build $(BUILD) -j $(JOBS) --target models
	tests/model/mutants --build $(BUILD)/tests/model --jobs $(JOBS)

# Inputs that are made up, for every parser: "make fuzz SECONDS=600".
fuzz:
	@tools/deps checks
	fuzz/run --seconds $(or $(SECONDS),10)

# Long runs: millions of tasks, minutes of stress. Before an issue is closed.
soak: all
	tools/soak $(BUILD)

bench: all
	$(BUILD)/bench/weft-bench

# ECHO: flags for the second part, else as RIVALS for the first.
rivals: all
	python3 bench/rivals/run.py --weft $(BUILD)/bench/weft-bench --build $(BUILD)/rivals $(RIVALS)
	$(MAKE) echo-rivals RIVALS="$(ECHO)"

# Echo servers under one load: weft's, those of rivals, and bare loops.
echo-rivals: all
	python3 bench/echo/run.py --weft $(BUILD)/bench --build $(BUILD)/rivals $(RIVALS)

tidy: all
	python3 tools/tidy --lib $(BUILD)/libweft.so

format:
	tools/format

format-check:
	tools/format --check

install: all
	cmake --install $(BUILD)

clean:
	rm -rf $(BUILD)
