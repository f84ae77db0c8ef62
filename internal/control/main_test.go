package control_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/coven-run/coven/internal/cli/root"
	"github.com/coven-run/coven/internal/fake/fakeapi"
	"github.com/coven-run/coven/internal/fake/fakeclaude"
	"github.com/coven-run/coven/internal/process"
)

// TestMain makes the test binary act as coven and as the fake agent CLI, which control starts. All of them
// get a temporary home.
func TestMain(m *testing.M) {
	testscript.Main(sealed{m}, map[string]func(){
		"coven":  coven,
		"claude": func() { os.Exit(fakeclaude.Main(os.Args[1:])) },
	})
}

func coven() {
	if len(os.Args) > 1 && os.Args[1] == "exec" {
		os.Exit(process.Main(os.Args[2:]))
	}
	os.Exit(root.Run(root.NewApp("test"), os.Args[1:]))
}

// sealed runs the tests with a home without settings and credentials.
type sealed struct{ *testing.M }

// Run implements testscript.TestingM.
func (s sealed) Run() int {
	home, err := os.MkdirTemp("", "cv") // sockets have short paths
	must(err)
	defer os.RemoveAll(home) //nolint:errcheck // a temporary directory
	for key, value := range map[string]string{
		"HOME": home, "USER": "tester", "LANG": "C.UTF-8", "XDG_RUNTIME_DIR": home,
		"XDG_CONFIG_HOME": filepath.Join(home, ".config"), "XDG_CACHE_HOME": filepath.Join(home, ".cache"),
		"GIT_CONFIG_GLOBAL": os.DevNull, "GIT_CONFIG_NOSYSTEM": "1",
		"GIT_AUTHOR_NAME": "Tester", "GIT_AUTHOR_EMAIL": "tester@example.invalid",
		"GIT_COMMITTER_NAME": "Tester", "GIT_COMMITTER_EMAIL": "tester@example.invalid",
		"ANTHROPIC_API_KEY": "dummy", "ANTHROPIC_BASE_URL": "http://127.0.0.1:1",
	} {
		must(os.Setenv(key, value))
	}
	return s.M.Run()
}

// source is the directory of this package.
var source = func() string {
	dir, err := os.Getwd()
	must(err)
	return dir
}()

// scenario scripts the fake agents: one writes a poem, the other paints and is held before it finishes.
const scenario = `
conversations:
  - match: Write a poem
    turns:
      - tools: [{name: Write, input: {file_path: "${CWD}/poem.txt", content: "roses are red\n"}}]
      - text: I wrote a poem.
  - match: Paint a wall
    turns:
      - tools: [{name: Write, input: {file_path: "${CWD}/wall", content: "red\n"}}]
      - hold: brush
        text: The wall is red.
      - text: I see that you want blue.
`

// scratch creates a git repository, makes it the current directory, and starts the fake model API.
func scratch() (api *fakeapi.Server, remove func()) {
	s, err := fakeapi.Parse([]byte(scenario))
	must(err)
	api, err = fakeapi.New(s)
	must(err)
	must(os.Setenv("ANTHROPIC_BASE_URL", api.URL))
	before, err := os.Getwd()
	must(err)
	dir, err := os.MkdirTemp("", "cv")
	must(err)
	must(os.Chdir(dir))
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"commit", "-q", "--allow-empty", "-m", "first"}} {
		must(exec.Command("git", args...).Run())
	}
	return api, func() {
		must(os.Chdir(before))
		must(os.RemoveAll(dir))
		must(api.Close())
	}
}

func must(err error) {
	if err != nil {
		panic(fmt.Sprint("set up: ", err))
	}
}
