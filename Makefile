# coven: see README.md. CI is .ci/run.

GO ?= go
BIN := bin
TOOLS := $(CURDIR)/.tools
PINS := .ci/pins

include $(PINS)

export PATH := $(TOOLS)/bin:$(PATH)
# The race detector sleeps a second at each exit of a process, and the tests start many.
export GORACE ?= atexit_sleep_ms=0

# The agent CLIs that .ci/claude and .ci/qwen install, for the tests.
CLIS := COVEN_REAL_CLAUDE=$(TOOLS)/claude/node_modules/.bin/claude COVEN_REAL_QWEN=$(TOOLS)/qwen/node_modules/.bin/qwen

.PHONY: build examples modules test stories e2e-codex e2e-latest crash soak torture lint fmt proto tidy demo man bench fuzz clean

build: ## build bin/coven
	CGO_ENABLED=0 $(GO) build -trimpath -o $(BIN)/coven ./cmd/coven

examples: ## build the example plugins in bin (reviewer-python needs gRPC for Python)
	@for m in examples/plugins/*/go.mod; do d=$$(dirname $$m); echo "$$d"; \
		CGO_ENABLED=0 $(GO) -C $$d build -trimpath -o $(CURDIR)/$(BIN)/coven-$$(basename $$d) . || exit 1; done
	@echo examples/plugins/reviewer-python; if /usr/bin/python3 -c 'import grpc, grpc_tools, cryptography' 2>/dev/null; then \
		examples/plugins/reviewer-python/build $(BIN); else \
		echo "  left out: apt-get install python3-grpcio python3-grpc-tools python3-cryptography"; fi

modules: ## download the Go modules of coven, its tests and its examples: the tests download none
	@echo "modules: fetching what is missing"
	@$(GO) mod download
	@for m in examples/plugins/*/go.mod; do $(GO) -C $$(dirname $$m) mod download || exit 1; done

test: modules ## run the tests; the long ones are in make stories
	@echo "test: a package a line; cmd/coven, with the stories, takes minutes"
	@# The longest packages go first, so that the others run beside them.
	$(GO) test -timeout 20m -parallel 4 $(TESTFLAGS) ./worktree ./cmd/coven ./plugins ./...

stories: modules ## run what make test omits: the stories with the real CLIs, the original's scenarios, the long ones
	@.ci/claude $(TOOLS) || echo "stories: no npm, or no registry: those with the real Claude Code CLI are skipped"
	@.ci/qwen $(TOOLS) || echo "stories: no npm, or no registry: those with the real Qwen Code CLI are skipped"
	COVEN_LONG=1 $(CLIS) $(GO) test -count=1 -timeout 40m $(TESTFLAGS) -run '^(TestReal|TestQwen|TestOriginal|TestLong|TestTorture)' ./cmd/coven
	$(CLIS) $(GO) test -count=1 -timeout 40m $(TESTFLAGS) ./internal/agent ./internal/fakeapi ./internal/fakeclaude
	COVEN_LONG=1 $(GO) test -count=1 -timeout 20m $(TESTFLAGS) -run '^(TestRevertProperty|TestCrowd)$$' ./worktree

e2e-codex: ## run the stories of agents that do not pass the gate, with the real Codex CLI (400 MB from npm)
	.ci/codex $(TOOLS)
	COVEN_REAL_CODEX=$(TOOLS)/codex/node_modules/.bin/codex COVEN_REQUIRE_REAL_CODEX=1 COVEN_LONG=1 \
		$(GO) test -count=1 -timeout 20m $(TESTFLAGS) -run TestCodex ./cmd/coven ./internal/fakeapi

LATEST := $(TOOLS)/latest

e2e-latest: ## run the stories and the contract of the real Claude Code CLI with the latest version on npm
	.ci/claude $(LATEST) latest
	@echo "Claude Code $$(cat $(LATEST)/claude/version) is npm's latest; $(CLAUDE_CODE) is pinned"
	COVEN_LONG=1 COVEN_REAL_CLAUDE=$(LATEST)/claude/node_modules/.bin/claude COVEN_REQUIRE_REAL_CLAUDE=1 \
		$(GO) test -count=1 -timeout 30m $(TESTFLAGS) -run '^(TestReal|TestRealKeepsTheContract)$$' ./cmd/coven ./internal/fakeclaude

crash: ## kill coven at many crash points and resume it: CRASH=all make crash uses all of them
	COVEN_LONG=1 $(GO) test -count=1 -timeout 60m -parallel 3 $(TESTFLAGS) -run TestCrash ./cmd/coven

soak: ## let 32 coven processes compete for one task, SOAK_ROUNDS times (200)
	COVEN_LONG=1 SOAK_ROUNDS=$(or $(SOAK_ROUNDS),200) $(GO) test -count=1 -timeout 60m $(TESTFLAGS) -run 'TestSoak|TestLateLanding|TestLeaseOfAnotherMachine' ./cmd/coven

torture: ## land while coven and git are killed (200 times) and while the disk is full (50 times)
	COVEN_LONG=1 TORTURE_KILLS=$(or $(TORTURE_KILLS),200) TORTURE_DISKS=$(or $(TORTURE_DISKS),50) \
		$(GO) test -count=1 -timeout 90m $(TESTFLAGS) -v -run '^TestTorture' ./cmd/coven

lint: $(TOOLS)/bin/golangci-lint ## run the linters of CI
	golangci-lint run --allow-parallel-runners ./...
	@for m in examples/plugins/*/go.mod; do (cd $$(dirname $$m) && golangci-lint run --allow-parallel-runners ./...) || exit 1; done

fmt: $(TOOLS)/bin/gofumpt ## format all Go code
	gofumpt -l -w $$(git ls-files -co --exclude-standard '*.go' | grep -v '\.pb\.go$$')

tidy: ## tidy the module and those of the example plugins
	$(GO) mod tidy
	@for m in examples/plugins/*/go.mod; do $(GO) -C $$(dirname $$m) mod tidy || exit 1; done

proto: $(TOOLS)/bin/protoc-gen-go $(TOOLS)/bin/protoc-gen-go-grpc ## generate the plugin wire from its .proto (needs protoc $(PROTOC_VERSION))
	protoc -I plugins/internal/proto --go_out=. --go_opt=module=github.com/coven-run/coven \
		--go-grpc_out=. --go-grpc_opt=module=github.com/coven-run/coven \
		plugins/internal/proto/coven/plugin/v1/*.proto

demo: build ## run one task from start to end in a scratch repository: REAL=1 uses your own login
	@if [ -n "$(REAL)" ]; then $(GO) run ./examples/demo -coven $(BIN)/coven -real; else \
		.ci/claude $(TOOLS) || echo "No npm, or no registry: the demo uses the fake CLI instead of the real one."; \
		$(GO) run ./examples/demo -coven $(BIN)/coven -claude $(TOOLS)/claude/node_modules/.bin/claude; fi

man: build ## write the man pages of all commands to bin/man
	$(BIN)/coven man $(BIN)/man

bench: ## run the benchmarks, each with its lower bound
	$(GO) test -timeout 60m -run '^$$' -bench . -benchtime 1s ./...

fuzz: ## run each fuzz target for a while: make fuzz FUZZTIME=30s
	.ci/fuzz $(or $(FUZZTIME),30s)

clean:
	rm -rf $(BIN) $(TOOLS)

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
