# Needs Go 1.26 and make. Whatever else is used is built from pinned sources into bin/, once.
#
#   make demo      see what Holdfast does
#   make test      run every test
#   make check     run every static check
#
# Variables: GO (the go command), HOLDFAST_TEMPORAL (a temporal command to use instead of looking for one),
# TESTFLAGS (added to go test), BENCHFLAGS (-quick, -full, -profile DIR), FUZZTIME (for each fuzz target),
# CHAOSFLAGS (-only TEXT, -jobs N, -keep; of a soak -for 1h or -soak N, -seed N).

GO ?= go
FUZZTIME ?= 10s
export GO
# A go.work of somebody else must not change what is built.
export GOWORK := off
# A clone that belongs to another user has no readable history; then nothing is stamped into the binary.
ifneq ($(shell git rev-parse HEAD >/dev/null 2>&1 && echo ok),ok)
export GOFLAGS := $(GOFLAGS) -buildvcs=false
endif

# Packages that run inside workflows.
DETERMINISTIC := ./workflows/... ./versioning/... ./effect/...

# The race detector needs a C compiler; go env says 0 when there is none.
CGO := $(shell $(GO) env CGO_ENABLED)
RACE := $(if $(filter 1,$(CGO)),-race)
GOTEST = HOLDFAST_TEMPORAL="$$(tools/temporal.sh)" $(GO) test

.DEFAULT_GOAL := help
.PHONY: help build demo test test-short check check-format check-tidy check-vet check-determinism check-lint \
	bench chaos chaos-quick soak histories fuzz tools mcp clean

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build bin/holdfast
	@[ -e bin/holdfast ] || echo "building bin/holdfast: the first time one to two minutes on two cores, then seconds"
	@mkdir -p bin
	$(GO) build -o bin/holdfast .

demo: build ## show the promise: approve a refund, kill the worker twice, see one refund (a minute, no API key)
	@temporal=$$(tools/temporal.sh) && HOLDFAST_TEMPORAL="$$temporal" bin/holdfast demo

test: mcp ## run every test, on a real Temporal server and real MCP servers where Node is there
	@$(if $(RACE),,echo "note: no C compiler found, so the tests run without the race detector")
	@tools/temporal.sh >/dev/null
	$(GOTEST) $(RACE) -shuffle=on -timeout 20m $(TESTFLAGS) ./...
	$(GO) test $(RACE) -shuffle=on -tags failpoint ./internal/failpoint/...

test-short: ## run the tests that need no server: seconds
	$(GO) test -short -shuffle=on $(TESTFLAGS) ./...

check: check-format check-tidy check-vet check-determinism check-lint ## run every static check
	@echo "check: all passed"

check-format: bin-lint ## gofumpt has nothing to change
	@changed=$$(bin/gofumpt -l .) && [ -z "$$changed" ] || \
		{ echo "not formatted by gofumpt:" && echo "$$changed" && echo "run: bin/gofumpt -w ." && exit 1; }

check-tidy: ## go.mod and go.sum say what the code needs, in all three modules
	@for m in . tools tools/lint; do \
		$(GO) -C $$m mod tidy -diff || { echo "go.mod or go.sum is not tidy: run: $(GO) -C $$m mod tidy"; exit 1; }; \
	done

check-vet: ## go vet, for the builds with and without failpoints
	$(GO) vet ./...
	$(GO) vet -tags failpoint ./...

check-determinism: bin-lint ## workflowcheck on the packages that run inside workflows
	bin/workflowcheck -config workflowcheck.config.yaml $(DETERMINISTIC)

check-lint: bin-lint ## golangci-lint, with the wall around the deterministic packages
	bin/golangci-lint run

bench: ## compare a turn with a naive loop and a floor (tests/bench; BENCHFLAGS=-help lists what can be chosen)
	@mkdir -p bin
	$(GO) build -o bin/bench ./tests/bench
	@temporal=$$(tools/temporal.sh) && HOLDFAST_TEMPORAL="$$temporal" bin/bench $(BENCHFLAGS)

chaos: bin-chaos ## try to break the promise at every boundary and print the table (some ten minutes; docs/proof.md)
	$(CHAOS) $(CHAOSFLAGS)

chaos-quick: bin-chaos ## a representative tenth of it, without the table (two to four minutes)
	$(CHAOS) -quick -plain=false -markdown /dev/null $(CHAOSFLAGS)

soak: bin-chaos ## random schedules for as long as asked (CHAOSFLAGS="-for 1h -seed 7"; else 1,000 of them)
	$(CHAOS) $(if $(filter -soak -for,$(CHAOSFLAGS)),,-soak 1000) $(CHAOSFLAGS)

histories: ## record the replay histories that this release lacks, then replay all (tests/histories; about four minutes)
	@tools/temporal.sh >/dev/null
	$(GOTEST) -count=1 -timeout 20m -v -run '^TestRecord$$' ./tests/histories -record
	$(GO) test ./tests/histories

fuzz: ## fuzz every parser of foreign bytes for FUZZTIME each
	tools/fuzz.sh $(FUZZTIME)

tools: ## build the pinned Temporal server and command into bin/, unless the PATH has one
	@tools/temporal.sh >/dev/null

mcp: ## install the MCP servers that the tests talk to (tests/mcp; skipped with a notice without Node)
	@tools/mcp.sh

clean: ## remove what was built; caches and .holdfast/ stay
	rm -rf bin

CHAOS = HOLDFAST_TEMPORAL="$$(tools/temporal.sh)" bin/chaos
.PHONY: bin-chaos
bin-chaos:
	@mkdir -p bin
	@tools/temporal.sh >/dev/null
	$(GO) build -tags failpoint -o bin/chaos ./tests/chaos

.PHONY: bin-lint
bin-lint:
	@tools/build.sh gofumpt tools/lint mvdan.cc/gofumpt "a few seconds"
	@tools/build.sh workflowcheck tools/lint go.temporal.io/sdk/contrib/tools/workflowcheck "a few seconds"
	@tools/build.sh golangci-lint tools/lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint "about two minutes on two cores"
