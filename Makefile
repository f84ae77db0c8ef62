# coven: see README.md. CI is .ci/run. make help lists the targets.

GO ?= go
BIN := bin
TOOLS := $(CURDIR)/.tools
PINS := .ci/pins

include $(PINS)

export PATH := $(TOOLS)/bin:$(PATH)

# All targets compile with the same flags, so that each package is compiled once. Without debug
# information, which a debugger makes for itself, the compiler needs a fifth less time. make lint
# vets; tests that run go test, such as those of the guides, would vet all their dependencies.
export CGO_ENABLED := 0
export GOFLAGS += -trimpath -vet=off -gcflags=all=-dwarf=false "-ldflags=-s -w"

# The race detector sleeps a second at each exit of a process, and the tests start many.
export GORACE ?= atexit_sleep_ms=0

# The agent CLIs and MCP servers that .ci/claude, .ci/qwen and .ci/mcp install, for the tests.
CLIS := COVEN_REAL_CLAUDE=$(TOOLS)/claude/node_modules/.bin/claude COVEN_REAL_QWEN=$(TOOLS)/qwen/node_modules/.bin/qwen COVEN_REAL_MCP=$(TOOLS)/mcp/node_modules/.bin
AXE := $(TOOLS)/mcp/node_modules/axe-core/axe.min.js

# testrun prints a line for each package, the output of failed tests, and the slowest tests. Tests
# often wait for a process: one package more than there are processors runs at once.
PACKAGES := $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
TESTRUN = $(GO) run ./internal/testrun -slowest 20 $(TESTRUNFLAGS) -- -timeout=60m -p=$(PACKAGES) -parallel=4

.PHONY: build distributed distributed-long help ci unsteady real-bd macos demo picture quiet-build quiet-claude test race race-stories examples modules stories long e2e-codex e2e-latest crash soak accept torture builds house lint fmt proto tidy man docs release installed bench speed speed-short fuzz clean

build: ## build bin/coven (plain make does this, too)
	$(GO) build -o $(BIN)/coven ./cmd/coven

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

# Only coven and the demo speak here: downloads show what they print if they fail.
DEMO := $(TOOLS)/bin/demo
quiet-build:
	@echo "building coven (the first time, this downloads its modules)"
	@.ci/quiet $(MAKE) --no-print-directory build
	@.ci/quiet $(GO) build -o $(DEMO) ./examples/demo

quiet-claude:
	@.ci/claude $(TOOLS) || echo "No npm, or no registry: the demo uses a stub instead of the real Claude Code CLI."

demo: quiet-build $(if $(REAL),,quiet-claude) ## run two tasks from start to end in a scratch repository; REAL=1 uses your login
	@$(DEMO) -coven $(BIN)/coven $(if $(REAL),-real,-claude $(TOOLS)/claude/node_modules/.bin/claude)

picture: quiet-build quiet-claude ## draw docs/demo.svg, the README's picture, from a run on a terminal
	@$(DEMO) -coven $(BIN)/coven -claude $(TOOLS)/claude/node_modules/.bin/claude -picture docs/demo.svg

examples: ## build the example plugins in bin (reviewer-python needs gRPC for Python, reviewer-node npm)
	@for m in examples/plugins/*/go.mod; do d=$$(dirname $$m); echo "$$d"; \
		$(GO) -C $$d build -o $(CURDIR)/$(BIN)/coven-$$(basename $$d) . || exit 1; done
	@echo examples/plugins/reviewer-python; if /usr/bin/python3 -c 'import grpc, grpc_tools, cryptography' 2>/dev/null; then \
		examples/plugins/reviewer-python/build $(BIN); else \
		echo "  left out: apt-get install python3-grpcio python3-grpc-tools python3-cryptography"; fi
	@echo examples/plugins/reviewer-node; examples/plugins/reviewer-node/build $(BIN) || \
		echo "  left out: no Node.js, no npm, or no registry"

modules: ## download the modules and packages of coven, its tests and its examples: the tests download none
	@echo "modules: fetching what is missing"
	@$(GO) mod download
	@for m in examples/plugins/*/go.mod; do $(GO) -C $$(dirname $$m) mod download || exit 1; done
	@examples/plugins/reviewer-node/build $(TOOLS)/examples || echo "modules: no Node.js, no npm, or no registry: the tests of reviewer-node are skipped"

test: modules ## run the tests; make stories and make long run what takes longer
	@# The longest packages go first, so that the others run beside them. make lint vets.
	@$(TESTRUN) $(TESTFLAGS) ./worktree ./cmd/coven ./plugins ./...

# Packages in which nothing, or next to nothing, happens at once, and which take long.
ALONE := /(cmd/coven|worktree/internal/git|worktree/checkout|examples/.*)$$

# The packages in which most happens at once.
RACE_1 := ./runner/... ./plugins ./internal/driver/chat ./internal/control/... ./internal/driver ./internal/gate ./internal/mcp/... ./internal/process ./internal/session ./internal/agent/spawn
RACE_2 = ./worktree $$($(GO) list ./... | grep -Ev '$(ALONE)' | grep -vFx "$$($(GO) list $(RACE_1))")

race: modules ## run the tests with the race detector, as far as something happens at once; PART=1: the most important packages, PART=2: the others
	@CGO_ENABLED=1 $(TESTRUN) -race $(if $(PART),$(RACE_$(PART)),$(RACE_1) $(RACE_2))

race-stories: modules ## play some of the stories with the race detector
	@CGO_ENABLED=1 $(TESTRUN) -race -run='^TestScript$$' ./cmd/coven

stories: modules ## run the stories with the real CLIs, and what holds the fakes to them
	@.ci/claude $(TOOLS) || echo "stories: no npm, or no registry: those with the real Claude Code CLI are skipped"
	@.ci/qwen $(TOOLS) || echo "stories: no npm, or no registry: those with the real Qwen Code CLI are skipped"
	@.ci/mcp $(TOOLS) || echo "stories: no npm, or no registry: those with real MCP servers are skipped"
	COVEN_LONG=1 $(CLIS) $(TESTRUN) -count=1 $(TESTFLAGS) -run='^(TestReal|TestQwen|TestMCP)' ./cmd/coven
	@[ ! -e $(AXE) ] || COVEN_AXE=$(AXE) $(TESTRUN) -count=1 $(TESTFLAGS) -run='^TestBrowserAccessible$$' ./internal/web
	$(CLIS) $(TESTRUN) -count=1 $(TESTFLAGS) ./internal/driver ./internal/fake/fakeacp ./internal/fake/fakeapi ./internal/fake/fakeclaude ./internal/sandbox/forwarder

long: modules ## run the long stories, the original's scenarios, and long tests of worktrees
	COVEN_LONG=1 $(TESTRUN) -count=1 $(TESTFLAGS) -run='^(TestOriginal|TestLong|TestTorture|TestContributing|TestFollow|TestWalk)' ./cmd/coven
	COVEN_LONG=1 $(TESTRUN) -count=1 $(TESTFLAGS) -run='^(TestRevertProperty|TestCrowd|TestUnchangedTreeIsExact|TestPoolIsAsNew|TestSparseTwins)$$' ./worktree
	COVEN_LONG=1 $(TESTRUN) -count=1 $(TESTFLAGS) -run='^TestGeneratedCommandsInTheFence$$' ./internal/permission

e2e-codex: ## run the stories of agents that do not pass the gate, with the real Codex CLI (400 MB from npm)
	.ci/codex $(TOOLS)
	COVEN_REAL_CODEX=$(TOOLS)/codex/node_modules/.bin/codex COVEN_REQUIRE_REAL_CODEX=1 COVEN_LONG=1 \
		$(TESTRUN) -count=1 $(TESTFLAGS) -run=TestCodex ./cmd/coven ./internal/fake/fakeapi

real-bd: ## compare the fake bd with the real one, and run the tracker's tests with it: BD=PATH names it, or npm installs it
	$(if $(BD),,.ci/bd $(TOOLS))
	COVEN_REAL_BD=$(or $(BD),$(TOOLS)/bd/node_modules/.bin/bd) $(TESTRUN) -count=1 $(TESTFLAGS) -run='^(TestRealKeepsTheContract|TestTrackers)$$' ./internal/fake/fakebd ./internal/task

LATEST := $(TOOLS)/latest

e2e-latest: ## run the stories and the contract of the real Claude Code CLI with the latest version on npm
	.ci/claude $(LATEST) latest
	@echo "Claude Code $$(cat $(LATEST)/claude/version) is npm's latest; $(CLAUDE_CODE) is pinned"
	COVEN_LONG=1 COVEN_REAL_CLAUDE=$(LATEST)/claude/node_modules/.bin/claude COVEN_REQUIRE_REAL_CLAUDE=1 \
		$(TESTRUN) -count=1 $(TESTFLAGS) -run='^TestReal(|KeepsTheContract|Claude|Race)$$' ./cmd/coven ./internal/fake/fakeclaude ./internal/sandbox/forwarder

TASKS ?= 60
distributed: build ## run the tests of workers: Temporal's server, and TASKS=60 tasks on machines that are killed and cut off (Linux, root); TASKS=0: only the tests
	@.ci/temporal $(TOOLS)
	@$(GO) -C distributed build -o $(CURDIR)/$(BIN)/ ./cmd/coven-worker ./chaos
	@$(CLIS) $(GO) -C distributed test -timeout 20m ./...
	@if [ "$(TASKS)" = 0 ]; then :; elif unshare --fork --pid --net --mount true 2>/dev/null; then $(BIN)/chaos -coven $(BIN)/coven -worker $(BIN)/coven-worker -tasks $(TASKS) $(CHAOS); \
		else echo "no namespaces here: the chaos test of workers is skipped"; fi

distributed-long: build ## run 10,000 tasks while a machine is killed each minute; LONG=500 for fewer; CHAOS='-dir D -keep', and -continue after a power cut (Linux, root)
	@.ci/temporal $(TOOLS)
	@$(GO) -C distributed build -o $(CURDIR)/$(BIN)/ ./cmd/coven-worker ./chaos
	@$(BIN)/chaos -coven $(BIN)/coven -worker $(BIN)/coven-worker -tasks $(or $(LONG),10000) -postgres -kill 1m -hang 0 -cut 0 -server 0 -origin 0 -for 24h -limit 24h $(CHAOS)

crash: ## kill coven at many crash points and resume it: CRASH=all make crash uses all of them, CRASH=few fewer, CRASHED='a|b' two stories
	COVEN_LONG=1 $(TESTRUN) -count=1 -timeout=5h $(TESTFLAGS) -run='^TestCrash$(if $(CRASHED),$$/^($(CRASHED))$$)' ./cmd/coven

soak: ## let 32 coven processes compete for one task, SOAK_ROUNDS times (200), run 32 tasks at once for SOAK_SECONDS (600), and destroy LOST_CASES (5000) worktrees while git fails
	COVEN_LONG=1 LOST_CASES=$(or $(LOST_CASES),5000) $(TESTRUN) -count=1 $(TESTFLAGS) -run=TestNothingLost ./worktree
	LOST_COMMANDS=$(or $(LOST_COMMANDS),500) $(TESTRUN) -count=1 $(TESTFLAGS) -run=TestNothingLostByCommands ./cmd/coven
	COVEN_LONG=1 SOAK_ROUNDS=$(or $(SOAK_ROUNDS),200) SOAK_SECONDS=$(or $(SOAK_SECONDS),600) $(TESTRUN) -count=1 $(TESTFLAGS) -run='TestSoak|TestLateLanding|TestLeaseOfAnotherMachine' ./cmd/coven

accept: modules ## run the acceptance tests of the design document for agents, with a line for each criterion
	@$(CLIS) .ci/accept

builds: ## build real projects in the sandbox as an ordinary user; make long does it as yourself
	COVEN_BUILDS=1 $(TESTRUN) -count=1 $(TESTFLAGS) -run='^TestBuildsOfUser$$' ./cmd/coven

torture: TESTRUNFLAGS += -output
torture: ## land while coven and git are killed (200 times) and while the disk is full (50 times)
	COVEN_LONG=1 TORTURE_KILLS=$(or $(TORTURE_KILLS),200) TORTURE_DISKS=$(or $(TORTURE_DISKS),50) \
		$(TESTRUN) -count=1 $(TESTFLAGS) -run='^TestTorture' ./cmd/coven

house: ## measure the packages and the language of comments
	@.ci/house

lint: $(TOOLS)/bin/golangci-lint ## run the linters of CI
	golangci-lint run --allow-parallel-runners ./...
	@for m in distributed/go.mod examples/plugins/*/go.mod; do (cd $$(dirname $$m) && golangci-lint run --allow-parallel-runners ./...) || exit 1; done

fmt: $(TOOLS)/bin/gofumpt ## format all Go code
	gofumpt -l -w $$(git ls-files -co --exclude-standard '*.go' | grep -v '\.pb\.go$$')

tidy: ## tidy the modules
	$(GO) mod tidy
	@for m in distributed/go.mod examples/plugins/*/go.mod; do $(GO) -C $$(dirname $$m) mod tidy || exit 1; done

proto: $(TOOLS)/bin/protoc-gen-go $(TOOLS)/bin/protoc-gen-go-grpc ## generate the plugin wire from its .proto (needs protoc, of the version in PROTOC_VERSION)
	protoc -I plugins/proto --go_out=. --go_opt=module=github.com/coven-run/coven \
		--go-grpc_out=. --go-grpc_opt=module=github.com/coven-run/coven \
		plugins/proto/coven/plugin/v1/*.proto

macos: ## build coven for macOS
	GOOS=darwin GOARCH=arm64 $(GO) build ./...

ci: ## run everything that CI runs
	.ci/run

unsteady: modules ## run the tests of what changed since the commit SINCE (HEAD~1) 20 times, at four times the usual parallelism, under load
	@.ci/unsteady $(or $(SINCE),HEAD~1)

man: ## write the man pages of all commands to bin/man
	$(GO) run ./internal/manual/man $(BIN)/man

docs: ## write the documentation as a static site, with a search, to dist/site
	$(GO) run ./internal/manual/site . dist/site

release: $(TOOLS)/bin/nfpm $(TOOLS)/bin/cyclonedx-gomod ## build archives, Debian packages, SBOMs and checksums of the commit in dist: PLATFORMS="linux/amd64" builds one
	.ci/release dist $(PLATFORMS)

installed: $(TOOLS)/bin/nfpm $(TOOLS)/bin/cyclonedx-gomod ## build the release twice and compare the bytes, install it in a new Debian root, and run the demo there
	.ci/installed

bench: ## run the benchmarks, each with its lower bound
	$(GO) test -timeout 60m -run='^$$' -bench . -benchtime 1s ./...

speed: TESTRUNFLAGS += -output
speed: build ## compare what coven takes with its floors, alone on the machine: tasks per second, worktrees, the way to the agent and back, memory, coven's own loop and Claude Code
	COVEN_SPEED=$(or $(SPEED),1) COVEN_BUILT=$(CURDIR)/$(BIN)/coven $(CLIS) $(TESTRUN) -count=1 -run='^(TestSpeed|TestPathCosts|TestMemory|TestLoopIsNotSlower)$$' ./cmd/coven
	COVEN_SPEED=$(or $(SPEED),1) $(TESTRUN) -count=1 -run='^TestCosts$$' ./worktree

speed-short: ## compare the most important of it, in less than two minutes
	$(MAKE) speed SPEED=short

fuzz: ## run each fuzz target for a while: make fuzz FUZZTIME=30s
	.ci/fuzz $(or $(FUZZTIME),30s)

clean: ## remove what make built and installed: bin, dist and .tools
	rm -rf $(BIN) dist $(TOOLS) examples/plugins/reviewer-node/node_modules

$(TOOLS)/bin/golangci-lint: $(PINS)
	GOBIN=$(TOOLS)/bin $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT)
	@touch $@

$(TOOLS)/bin/gofumpt: $(PINS)
	GOBIN=$(TOOLS)/bin $(GO) install mvdan.cc/gofumpt@$(GOFUMPT)
	@touch $@

$(TOOLS)/bin/protoc-gen-go: $(PINS)
	GOBIN=$(TOOLS)/bin $(GO) install google.golang.org/protobuf/cmd/protoc-gen-go@$(PROTOC_GEN_GO)
	@touch $@

$(TOOLS)/bin/protoc-gen-go-grpc: $(PINS)
	GOBIN=$(TOOLS)/bin $(GO) install google.golang.org/grpc/cmd/protoc-gen-go-grpc@$(PROTOC_GEN_GO_GRPC)
	@touch $@

$(TOOLS)/bin/nfpm: $(PINS)
	GOBIN=$(TOOLS)/bin $(GO) install github.com/goreleaser/nfpm/v2/cmd/nfpm@$(NFPM)
	@touch $@

$(TOOLS)/bin/cyclonedx-gomod: $(PINS)
	GOBIN=$(TOOLS)/bin $(GO) install github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@$(CYCLONEDX_GOMOD)
	@touch $@
