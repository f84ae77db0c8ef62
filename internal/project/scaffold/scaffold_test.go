package scaffold_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project/scaffold"
	"github.com/coven-run/coven/plugins"
	"github.com/coven-run/coven/plugins/plugintest"
)

// root is the source of coven.
const root = "../../.."

// Every project that coven writes builds as its README describes and passes the conformance tests.
func TestPlugins(t *testing.T) {
	for _, tc := range []struct {
		kind plugins.Kind
		lang string
	}{
		{plugins.KindReviewer, "go"},
		{plugins.KindArbiter, "go"},
		{plugins.KindProvider, "go"},
		{plugins.KindModel, "go"},
		{plugins.KindForge, "go"},
		{plugins.KindReviewer, "python"},
		{plugins.KindArbiter, "python"},
		{plugins.KindReviewer, "node"},
		{plugins.KindArbiter, "node"},
	} {
		t.Run(string(tc.kind)+" "+tc.lang, func(t *testing.T) {
			t.Parallel()
			require(t, tc.lang)
			p, err := scaffold.Plugin(tc.kind, "my-own2", tc.lang)
			if err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(t.TempDir(), p.Name)
			if err := scaffold.Create(dir, p.Files); err != nil {
				t.Fatal(err)
			}
			prepare(t, dir, tc.lang)
			for _, command := range p.Commands[:len(p.Commands)-1] { // the last one is the suite
				run(t, dir, strings.Fields(command)...)
			}
			conforms(t, dir, p)
			if tc.lang == "node" {
				byHand(t, belowAnESModule(t, filepath.Join(dir, p.Name)))
			}
		})
	}
}

// belowAnESModule returns a copy of a plugin inside a repository of ES modules, where node treats the file
// as an ES module.
func belowAnESModule(t *testing.T, plugin string) string {
	t.Helper()
	dir := t.TempDir()
	binary, err := os.ReadFile(plugin)
	copied := filepath.Join(dir, filepath.Base(plugin))
	err = errors.Join(err, os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"type": "module"}`), 0o644), os.WriteFile(copied, binary, 0o755))
	if err != nil {
		t.Fatal(err)
	}
	return copied
}

// prepare makes a project build from this source, without the network.
func prepare(t *testing.T, dir, lang string) {
	t.Helper()
	source, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	switch lang {
	case "go":
		run(t, dir, "go", "mod", "edit", "-replace", "github.com/coven-run/coven="+source)
	case "node":
		if err := os.Symlink(filepath.Join(source, "examples/plugins/reviewer-node/node_modules"), filepath.Join(dir, "node_modules")); err != nil {
			t.Fatal(err)
		}
	}
}

// conforms runs the conformance tests, as the last command of a project does.
func conforms(t *testing.T, dir string, p *scaffold.Project) {
	t.Helper()
	o := plugintest.Options{Ready: 2 * time.Minute, Answer: 2 * time.Minute, End: time.Minute}
	if _, file, ok := strings.Cut(p.Commands[len(p.Commands)-1], " --transcript "); ok {
		var err error
		if o.Transcript, err = os.ReadFile(filepath.Join(dir, file)); err != nil {
			t.Fatal(err)
		}
	}
	byHand(t, filepath.Join(dir, p.Name))
	if passed := plugintest.Test(t, filepath.Join(dir, p.Name), "", o); passed < 13 {
		t.Errorf("%d cases passed", passed)
	}
}

// byHand starts a plugin as a user might. The plugin describes itself in one line.
func byHand(t *testing.T, binary string) {
	t.Helper()
	var stdout, stderr strings.Builder
	cmd := exec.Command(binary)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	_ = cmd.Run()
	kind, err := plugintest.KindOf(binary)
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`^This is an? ` + string(kind) + ` plugin for coven, which starts it when needed; to install it, see: coven help plugins\n$`)
	if cmd.ProcessState.ExitCode() != 2 || stdout.Len() > 0 || !line.MatchString(stderr.String()) {
		t.Errorf("by hand: exit code %d, %q, %q", cmd.ProcessState.ExitCode(), stdout.String(), stderr.String())
	}
}

// require skips a test if the language is not installed, unless the environment requires it.
func require(t *testing.T, lang string) {
	t.Helper()
	var check *exec.Cmd
	switch lang {
	case "python":
		check = exec.Command("/usr/bin/python3", "-c", "import grpc, grpc_tools, cryptography")
	case "node":
		check = exec.Command("sh", "-c", "node --version && cmp package-lock.json node_modules/.installed")
		check.Dir = filepath.Join(root, "examples/plugins/reviewer-node")
	default:
		return
	}
	if out, err := check.CombinedOutput(); err != nil {
		if os.Getenv("COVEN_REQUIRE_"+strings.ToUpper(lang)) != "" {
			t.Fatalf("plugins in %s are required: %v\n%s", lang, err, out)
		}
		t.Skipf("plugins in %s cannot be built here: make modules, and the packages that make examples names", lang)
	}
}

// run runs a command as the author of a plugin.
func run(t *testing.T, dir string, argv ...string) {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOPROXY=off", "GOSUMDB=off", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%q: %v\n%s", argv, err, out)
	}
}

// The source of every project is formatted, and templates leave no blanks where they omit text.
func TestSources(t *testing.T) {
	for _, kind := range plugins.Kinds() {
		for _, lang := range scaffold.Langs() {
			p, err := scaffold.Plugin(kind, "x", lang)
			if lang != "go" && kind != plugins.KindReviewer && kind != plugins.KindArbiter {
				if err == nil || exit.Code(err) != exit.Usage || !strings.Contains(exit.Next(err), "--lang go") {
					t.Errorf("%s in %s: %v, next %q", kind, lang, err, exit.Next(err))
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			if _, err := scaffold.Write(dir, p.Files, false); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command("gofmt", "-l", dir).CombinedOutput(); err != nil || len(out) > 0 {
				t.Errorf("gofmt: %v\n%s", err, out)
			}
			for _, f := range p.Files {
				if text := string(f.Content); strings.Contains(text, "<%") || strings.Contains(text, "<no value>") || strings.Contains(text, "\n\n\n\n") {
					t.Errorf("%s:\n%s", f.Path, text)
				}
			}
		}
	}
}

func TestWrongNames(t *testing.T) {
	for _, tc := range []struct{ kind, name, lang, want, next string }{
		{"reviwer", "x", "go", `"reviwer" is not a plugin kind (did you mean "reviewer"?)`, "coven plugins new --help"},
		{"thing", "x", "go", "is not a plugin kind (known: provider, model, reviewer, arbiter, forge)", "coven plugins new --help"},
		{"reviewer", "X y", "go", `invalid plugin name "X y"`, "coven plugins new --help"},
		{"reviewer", "../x", "go", `invalid plugin name "../x"`, "coven plugins new --help"},
		{"reviewer", "", "go", `invalid plugin name ""`, "coven plugins new --help"},
		{"reviewer", "coven-reviewer-x", "go", "which coven adds", "coven plugins new reviewer x"},
		{"reviewer", "x", "pyton", `(did you mean "python"?)`, "coven plugins new --help"},
		{"reviewer", "x", "", "(known: go, python, node)", "coven plugins new --help"},
	} {
		_, err := scaffold.Plugin(plugins.Kind(tc.kind), tc.name, tc.lang)
		if err == nil || !strings.Contains(err.Error(), tc.want) || exit.Code(err) != exit.Usage || exit.Next(err) != tc.next {
			t.Errorf("%q: %v, next %q", tc, err, exit.Next(err))
		}
	}
}

// Create writes nothing if the path exists.
func TestCreate(t *testing.T) {
	files := []scaffold.File{{Path: "a/b", Content: []byte("x"), Executable: true}}
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join(dir, "nowhere"), link); err != nil {
		t.Fatal(err)
	}
	for _, there := range []string{dir, link} {
		if err := scaffold.Create(there, files); exit.Code(err) != exit.Usage {
			t.Errorf("%s: %v", there, err)
		}
	}
	if _, err := os.Lstat(filepath.Join(dir, "a")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something was written: %v", err)
	}
	if err := scaffold.Create(filepath.Join(dir, "new"), files); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dir, "new/a/b")); err != nil || info.Mode().Perm()&0o100 == 0 {
		t.Errorf("%v %v", info, err)
	}
	if info, err := os.Stat(filepath.Join(dir, "new")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("%v %v", info, err)
	}
}

// A directory appears with all its files, once, or not at all. Later calls return the error that it exists,
// and leave nothing else behind.
func TestCreateWhole(t *testing.T) {
	files := []scaffold.File{{Path: "a", Content: []byte("x")}, {Path: "b/c", Content: []byte("y")}}
	at := t.TempDir()
	dir := filepath.Join(at, "new")
	results := make(chan error)
	for range 8 {
		go func() { results <- scaffold.Create(dir, files) }()
	}
	made := 0
	for range 8 {
		if err := <-results; err == nil {
			made++
		} else if exit.Code(err) != exit.Usage || !strings.Contains(err.Error(), "new exists: nothing was written") {
			t.Error(err)
		}
	}
	written, err := scaffold.Write(dir, files, false)
	if made != 1 || err != nil || !written[0].Unchanged || !written[1].Unchanged {
		t.Errorf("made %d times: %v, %v", made, written, err)
	}
	// The second file cannot be written, because its directory is a file.
	err = scaffold.Create(filepath.Join(at, "bad"), append(files, scaffold.File{Path: "a/d"}))
	if exit.Code(err) != exit.Usage || !strings.HasSuffix(err.Error(), "/bad: not a directory") || exit.Next(err) != "ls -ld "+at {
		t.Errorf("%v, next %q", err, exit.Next(err))
	}
	if left, err := os.ReadDir(at); err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
}

// The next command for a directory that cannot be created shows a directory that exists.
func TestUnwritable(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	files := []scaffold.File{{Path: "a/b", Content: []byte("x")}}
	for _, at := range []string{"file/new", "file/x/new", strings.Repeat("x", 300), "missing/new"} {
		err := scaffold.Create(filepath.Join(dir, at), files)
		if at == "file/x/new" {
			_, err = scaffold.Write(filepath.Join(dir, at), files, false)
		}
		shown, found := strings.CutPrefix(exit.Next(err), "ls -ld ")
		if _, statErr := os.Lstat(shown); err == nil || exit.Code(err) != exit.Usage || !found || statErr != nil {
			t.Errorf("%.20s: %v, next %q, %v", at, err, exit.Next(err), statErr)
		}
	}
}

// The error about differing files agrees with their number.
func TestDifferError(t *testing.T) {
	for want, paths := range map[string][]string{
		"a exists and differs: nothing was written":  {"a"},
		"a, b exist and differ: nothing was written": {"a", "b"},
	} {
		if err := (&scaffold.DifferError{Paths: paths}); err.Error() != want || exit.Code(err) != exit.Usage {
			t.Errorf("%q, want %q", err, want)
		}
	}
}
