package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/coven-run/coven/internal/fake/fakeacp"
	"github.com/coven-run/coven/internal/fake/fakebd"
	"github.com/coven-run/coven/internal/fake/fakeclaude"
	"github.com/coven-run/coven/internal/fake/fakemcp"
)

// TestMain makes the test binary act as coven, the fake agent CLI and the fake bd.
func TestMain(m *testing.M) {
	testscript.Main(zooKeeper{m}, map[string]func(){
		"coven":  watched,
		"claude": func() { os.Exit(fakeclaude.Main(os.Args[1:])) },
		"bd":     func() { os.Exit(fakebd.Main(os.Args[1:])) },

		"fakeacp": func() { os.Exit(fakeacp.Main(os.Args[1:])) },
		"fakemcp": func() { os.Exit(fakemcp.Main(os.Args[1:])) },
		"without": without,
		"dial":    dial,
		"listen":  listen,
		"swap":    swap,
	})
}

// TestScript tests the behavior of the product: one story per file, with the real coven, real git, and the
// fake agent CLI on a fake model API. With the race detector, which makes stories much longer, it skips
// those that TestReal plays, too, and plays every twelfth of the others.
func TestScript(t *testing.T) {
	if racing {
		playFake(t, 0, "script")
		return
	}
	playFake(t, 50, "script", "real")
}

// TestLong plays the stories that wait, or that run much of coven many times.
func TestLong(t *testing.T) {
	longRun(t)
	playFake(t, 0, "long")
}

// playFake plays the stories in directories below testdata. All together must land at least this many changes with a receipt.
func playFake(t *testing.T, least int, dirs ...string) {
	t.Helper()
	watchAdvice(t)
	files := stories(t, dirs...)
	if racing && os.Getenv("COVEN_LONG") == "" {
		files = someOf(files)
	}
	landed := watchLandings(t, least)
	testscript.Run(t, testscript.Params{
		Files: files, Setup: landed.seal, Cmds: scriptCommands(), RequireExplicitExec: true, RequireUniqueNames: true,
		UpdateScripts: os.Getenv("UPDATE") != "", Condition: condition,
	})
}

// someOf returns the files to play with the race detector, for which all would take too long.
func someOf(files []string) (some []string) {
	for i, file := range files {
		if i%12 == 0 {
			some = append(some, file)
		}
	}
	return some
}

// TestReal plays the stories that only the real Claude Code CLI can prove, on the same fake model API. The
// fake CLI plays them, too, to check the fake.
func TestReal(t *testing.T) {
	play(t, "claude", "real", "claude")
}

// TestQwen plays the stories of agents whose calls do not pass the gate, with the real Qwen Code CLI.
func TestQwen(t *testing.T) { play(t, "qwen", "ungated", "qwen") }

// TestMCP plays the stories of agents that use real MCP servers.
func TestMCP(t *testing.T) {
	longRun(t)
	bin := os.Getenv("COVEN_REAL_MCP")
	if _, err := os.Stat(bin); err != nil {
		if os.Getenv("COVEN_REQUIRE_REAL_MCP") != "" {
			t.Fatal("the real MCP servers are required")
		}
		t.Skip("the real MCP servers are not here: run .ci/mcp .tools, and set COVEN_REAL_MCP")
	}
	bin, err := filepath.Abs(bin)
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Files: stories(t, "mcp"), Cmds: scriptCommands(), RequireExplicitExec: true, RequireUniqueNames: true,
		Setup: func(env *testscript.Env) error {
			if err := seal(env); err != nil {
				return err
			}
			env.Setenv("PATH", bin+string(os.PathListSeparator)+env.Getenv("PATH"))
			return nil
		},
	})
}

// TestCodex plays the same stories with the real Codex CLI, which make e2e-codex installs.
func TestCodex(t *testing.T) { play(t, "codex", "ungated", "codex") }

// longRun skips a test that takes minutes, unless COVEN_LONG is set. make long, crash, soak and torture set
// it; CI runs the first three.
func longRun(t *testing.T) {
	t.Helper()
	if os.Getenv("COVEN_LONG") == "" {
		t.Skip("make long, crash, soak or torture runs it (COVEN_LONG=1)")
	}
}

// play plays the stories in directories below testdata with a real agent CLI, whose name is in $PROVIDER.
func play(t *testing.T, program string, dirs ...string) {
	t.Helper()
	longRun(t)
	variable := "REAL_" + strings.ToUpper(program)
	cli := os.Getenv("COVEN_" + variable)
	if _, err := os.Stat(cli); err != nil {
		if os.Getenv("COVEN_REQUIRE_"+variable) != "" {
			t.Fatalf("the real %s is required: %v", program, err)
		}
		t.Skipf("the real %s is not here: run .ci/%s .tools, and set COVEN_%s", program, program, variable)
	}
	cli, err := filepath.Abs(cli)
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Files: stories(t, dirs...), Cmds: scriptCommands(), RequireExplicitExec: true, RequireUniqueNames: true, Condition: condition,
		Setup: func(env *testscript.Env) error {
			if err := seal(env); err != nil {
				return err
			}
			env.Setenv("PROVIDER", program)
			return realCLI(env, program, cli)
		},
	})
}

// TestFixture creates the repository that testdata/fixtures has of a released version, and stores it if
// FIXTURE names the version.
func TestFixture(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Files: stories(t, "fixtures"), Cmds: scriptCommands(), RequireExplicitExec: true, RequireUniqueNames: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("FIXTURE", os.Getenv("FIXTURE"))
			return seal(env)
		},
	})
}

// stories returns the files of directories below testdata.
func stories(t *testing.T, dirs ...string) []string {
	t.Helper()
	var files []string
	for _, dir := range dirs {
		found, err := filepath.Glob(filepath.Join("testdata", dir, "*.txtar"))
		if err != nil || len(found) == 0 {
			t.Fatalf("no stories in %s: %v", dir, err)
		}
		files = append(files, found...)
	}
	return files
}

// seal gives a script a separate home without credentials and settings, a git identity, and the variables
// that isolate the agent CLI.
func seal(env *testscript.Env) error {
	home := filepath.Join(env.WorkDir, ".home")
	for _, dir := range []string{home, filepath.Join(home, ".fake-claude")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	fixtures, err := filepath.Abs(filepath.Join("testdata", "fixtures"))
	if err != nil {
		return err
	}
	for key, value := range map[string]string{
		"FIXTURES": fixtures, "HOME": home, "USER": "tester", "TERM": "xterm", "LANG": "C.UTF-8",
		"XDG_CONFIG_HOME": filepath.Join(home, ".config"), "XDG_CACHE_HOME": filepath.Join(home, ".cache"),
		"GIT_CONFIG_GLOBAL": filepath.Join(home, ".gitconfig-global"), "GIT_CONFIG_NOSYSTEM": "1", // not os.DevNull, which git config --global replaces
		"GIT_AUTHOR_NAME": "Tester", "GIT_AUTHOR_EMAIL": "tester@example.invalid",
		"GIT_COMMITTER_NAME": "Tester", "GIT_COMMITTER_EMAIL": "tester@example.invalid",
		"ANTHROPIC_API_KEY": "dummy", "ANTHROPIC_BASE_URL": "http://127.0.0.1:1",
		"OPENAI_API_KEY": "dummy", "OPENAI_BASE_URL": "http://127.0.0.1:1/v1", "OPENAI_MODEL": "m-1",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "CLAUDE_CODE_MAX_RETRIES": "4",
	} {
		env.Setenv(key, value)
	}
	settings := filepath.Join(home, ".config", "coven")
	if err := errors.Join(plainGrimoire(filepath.Join(settings, "grimoires")), fakeSettings(filepath.Join(settings, "config.yaml"))); err != nil {
		return err
	}
	run, err := shortTemp()
	if err != nil {
		return err
	}
	env.Setenv("XDG_RUNTIME_DIR", run)
	env.Defer(func() { _ = os.RemoveAll(run) })
	env.Setenv(unadvised, os.Getenv(unadvised))
	env.Values[apisKey{}] = &apis{}
	env.Defer(func() { env.Values[apisKey{}].(*apis).close() })
	env.Values[forgeKey{}] = &forge{}
	env.Defer(func() { env.Values[forgeKey{}].(*forge).close() })
	return nil
}

// fakeSettings writes user settings that let the fake CLI store its records, unless the story has its own
// settings.
func fakeSettings(file string) error {
	if _, err := os.Lstat(file); err == nil {
		return nil
	}
	return os.WriteFile(file, []byte("sandbox: {write: [~/.fake-claude]}\n"), 0o600)
}

// plainGrimoire replaces the built-in grimoire with one without an agent review. Stories about the built-in
// grimoire remove it.
func plainGrimoire(dir string) error {
	text, err := os.ReadFile(filepath.Join("testdata", "home", "implement.yaml"))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "implement.yaml"), text, 0o644)
}

// realCLI puts the real agent CLI in front of the fake one in PATH.
func realCLI(env *testscript.Env, program, cli string) error {
	bin := filepath.Join(env.WorkDir, ".real")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return err
	}
	if err := os.Symlink(cli, filepath.Join(bin, program)); err != nil {
		return err
	}
	env.Setenv("PATH", bin+string(os.PathListSeparator)+env.Getenv("PATH"))
	return nil
}

// shortTemp creates a temporary directory for sockets, whose paths must be short.
func shortTemp() (string, error) {
	dir := os.TempDir()
	if len(dir) > 30 {
		dir = "/tmp"
	}
	return os.MkdirTemp(dir, "cv")
}
