# A thin layer over Meson. Build variants, each in its own folder:
#   make                            build/
#   make SAN=address,undefined      build-asan/
#   make SAN=thread                 build-tsan/
#   make FUZZ=1                     build-fuzz/   (clang)
#   make COV=1                      build-cov/
# Programs end in bin/ of that folder.
PREFIX ?= /usr/local
DESTDIR ?=
SAN ?= none

ifneq ($(FUZZ),)
B := build-fuzz
SETUP := -Dfuzz=true
else ifneq ($(COV),)
B := build-cov
SETUP := -Dcov=true
else ifeq ($(SAN),address,undefined)
B := build-asan
SETUP := -Dsan=$(SAN)
else ifeq ($(SAN),thread)
B := build-tsan
SETUP := -Dsan=$(SAN)
else ifeq ($(SAN),none)
B := build
SETUP :=
else
$(error SAN is none, address,undefined or thread)
endif

# Several worktrees next to each other share what ccache has compiled.
export CCACHE_BASEDIR := $(abspath $(CURDIR)/..)
export CCACHE_NOHASHDIR := 1

.PHONY: all deps build check-quick test test-long bench lint format fuzz demo install clean
.DEFAULT_GOAL := all

all: deps build

deps:
	@scripts/install-deps build

# Separate from `all` for those who have the dependencies and want no package manager in the loop.
build:
	@scripts/configure $(B) --prefix=$(PREFIX) $(SETUP)
	@ninja -C $(B) programs

# Before every commit: warnings are errors, unit tests only. Its own folder, so that `make` need not rebuild.
check-quick:
	@scripts/configure build-check --werror
	@ninja -C build-check
	@meson test -C build-check --no-rebuild --suite unit --print-errorlogs

test:
	@scripts/install-deps test
	@scripts/run-tests

test-long:
	@scripts/install-deps test
	@scripts/run-tests --long

bench: all
	@if [ -x scripts/bench ]; then scripts/bench $(BENCH); else \
		echo "make bench: scripts/bench is not written yet" >&2; exit 1; fi

lint:
	@scripts/lint

format:
	@git ls-files '*.c' '*.h' | xargs -r clang-format -i

fuzz:
	@scripts/install-deps test
	@scripts/run-tests fuzz

demo: all
	@if [ -x scripts/demo ]; then scripts/demo; else \
		echo "make demo: scripts/demo is not written yet" >&2; exit 1; fi

install:
	@scripts/configure $(B) --prefix=$(PREFIX) $(SETUP)
	@ninja -C $(B) programs
	@DESTDIR=$(DESTDIR) meson install -C $(B) --no-rebuild

clean:
	rm -rf build build-*
