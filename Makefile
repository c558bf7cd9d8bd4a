# The developer's commands; everything they make lies in build/. `make help` lists them.

# What `make demo` runs: atlas, or gemma3-270m, which goes on with a text where atlas answers.
MODEL ?= atlas
ifeq ($(MODEL),gemma3-270m)
PROMPT ?= The capital of France is
DEMO_OPTIONS = -n 32 -p
else
PROMPT ?= What is the capital of France?
DEMO_OPTIONS = --chat
endif
TANDEM = build/release/src/cli/tandem
# Tests run side by side, and the longest that one may take, in seconds.
TEST_JOBS ?= 2
TEST_SECONDS ?= 1800
FUZZ_SECONDS ?= 600

CTEST = tools/run --software ctest --output-on-failure --no-tests=error \
        --parallel $(TEST_JOBS) --timeout $(TEST_SECONDS)
CLANG_FORMAT = $(shell command -v clang-format-14 || echo clang-format)
FORMAT = find examples include src tests \( -name '*.h' -o -name '*.cpp' \) -print0 | xargs -0 $(CLANG_FORMAT)

# The programs with tests that need no device; the sanitizers' build makes only these.
CPU_TESTS = test_base test_spec test_gpu test_ops test_model test_text test_artifact test_exporter test_engine

# A library of the user's own, or the pinned one; -U forgets what an earlier run was told.
WEBGPU = -U 'TANDEM_WEBGPU_*' \
  $(if $(TANDEM_WEBGPU_LIBRARY),-DTANDEM_WEBGPU_LIBRARY="$(TANDEM_WEBGPU_LIBRARY)" \
                                -DTANDEM_WEBGPU_INCLUDE="$(TANDEM_WEBGPU_INCLUDE)")

.PHONY: help setup program demo bench release dev asan web web-check web-package web-demo test test-long test-wgpu fuzz gemma-tokenizer format check-format clean
.NOTPARALLEL:

help:
	@echo 'make setup         install what is missing: packages, the pinned WebGPU library'
	@echo 'make demo          build, and answer PROMPT="..." with the model in models/atlas;'
	@echo '                   MODEL=gemma3-270m downloads Gemma 3 270M (253 MB) and goes on with PROMPT'
	@echo 'make bench         measure this machine beside the last recorded run: models/atlas, or random'
	@echo '                   weights in the sizes of BENCH=e2b (2.6 GB) or e4b'
	@echo 'make test          every test that needs no real GPU (20 minutes at most)'
	@echo 'make test-long     the same with the full matrices, then the CPU-side tests with sanitizers'
	@echo 'make test-wgpu     the tests that need a device, with wgpu-native instead of Dawn'
	@echo 'make fuzz          the fuzzers of all formats that come from outside, with clang'
	@echo 'make release       build/release: the optimized program'
	@echo 'make dev           build/dev: program and tests, warnings are errors'
	@echo 'make asan          build/asan: CPU-side tests with address and undefined-behaviour sanitizers'
	@echo 'make web           build/web: the browser modules, and the release.json of models/atlas with them'
	@echo 'make web-package   build/web-package: the npm package; build/web-site: the page that shows it'
	@echo 'make web-demo      serves the page on localhost:8000'
	@echo 'make web-check     builds them again elsewhere and compares every byte'
	@echo 'make format        format the C++ sources; make check-format only looks'
	@echo 'make clean         remove the builds; the downloaded library stays'

setup:
	tools/setup

program:
	tools/setup --demo
	cmake --preset release -DTANDEM_TESTS=OFF $(WEBGPU)
	cmake --build build/release --target tandem

models/gemma3-270m: | program
	python3 tools/fetch_gemma3.py build/deps/gemma3-270m
	$(TANDEM) export build/deps/gemma3-270m/gemma-3-270m-q4_k_m.gguf -o $@

demo: export TANDEM_PROMPT = $(PROMPT)
demo: program models/$(MODEL)
	tools/run $(TANDEM) generate models/$(MODEL) $(DEMO_OPTIONS) "$$TANDEM_PROMPT"

# What `make bench` measures: models/atlas, or a geometry of `tandem synthesize`.
BENCH ?= atlas
BENCHED = $(if $(filter atlas,$(BENCH)),models,build/bench)/$(BENCH)

build/bench/%: | program
	mkdir -p build/bench
	$(TANDEM) synthesize --geometry $* --assistant -o $@

bench: program $(BENCHED)
	mkdir -p build/bench
	rm -f build/bench/$(BENCH).json
	tools/run $(TANDEM) bench $(BENCHED) --json build/bench/$(BENCH).json $(BENCH_OPTIONS)
	tools/performance.py --against build/bench/$(BENCH).json

release: setup
	cmake --preset release -DTANDEM_TESTS=ON $(WEBGPU)
	cmake --build build/release

dev: setup
	cmake --preset dev $(WEBGPU)
	cmake --build build/dev

asan: setup
	cmake --preset asan $(WEBGPU)
	cmake --build build/asan --target $(CPU_TESTS)

# Emscripten's own cmake wrapper names its toolchain.
web: dev
	tools/setup --web
	emcmake cmake --preset web
	cmake --build build/web-objects
	rm -f build/web/release.json
	build/dev/src/cli/tandem release models/atlas --web build/web -o build/web/release.json
	tools/check_web.py build/web

web-package: web
	node web/build.mjs

web-demo: web-package
	tools/serve.py build/web-site

# The same bytes from another folder.
web-check: web
	rm -rf build/web-again
	git clone --quiet . build/web-again
	cd build/web-again && emcmake cmake --preset web && cmake --build build/web-objects
	tools/check_web.py build/web build/web-again/build/web
	rm -rf build/web-again

test: dev web-package
	$(CTEST) --test-dir build/dev -LE '^long$$'

test-long: gemma-tokenizer dev web-package asan
	$(CTEST) --test-dir build/dev
	$(CTEST) --test-dir build/asan -L '^cpu$$'
	$(MAKE) fuzz FUZZ_SECONDS=5

# Every fuzzer for FUZZ_SECONDS; what it finds lies in build/fuzz/findings.
fuzz:
	tools/setup --fuzz
	cmake --preset fuzz $(WEBGPU)
	cmake --build build/fuzz --target fuzzers
	tools/fuzz build/fuzz $(FUZZ_SECONDS)

test-wgpu: setup
	python3 tools/fetch_webgpu.py --wgpu-native build/deps/webgpu
	cmake --preset dev -B build/wgpu-native -U 'TANDEM_WEBGPU_*' \
	  -DTANDEM_WEBGPU_LIBRARY="$(CURDIR)/build/deps/webgpu/lib/libwgpu_native-release.so"
	cmake --build build/wgpu-native
	$(CTEST) --test-dir build/wgpu-native -LE '^(long|cpu)$$' -E '^(web|package|tools)'

# The long tests of text/ read it; it is not ours to keep in the source tree.
gemma-tokenizer:
	tools/fetch_gemma_tokenizer.sh build/deps/gemma-tokenizer

format:
	$(FORMAT) -i

check-format:
	$(FORMAT) --dry-run --Werror

clean:
	rm -rf build/release build/dev build/asan build/fuzz build/wgpu-native build/web build/web-objects \
	  build/web-package build/web-site
