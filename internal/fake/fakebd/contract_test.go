package fakebd

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "bd" {
		os.Exit(Main(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// fake returns the path of a bd that is this test program.
func fake(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "bd")
	if err := os.Symlink(self, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// result is the result of a command.
type result struct {
	code        string
	out, errout string
}

// bd runs one command in a directory.
func bd(t *testing.T, program, dir string, env []string, args ...string) result {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = dir
	cmd.Env = append([]string{
		"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "GORACE=atexit_sleep_ms=0",
		"GIT_AUTHOR_NAME=Tester", "GIT_AUTHOR_EMAIL=t@example.com",
	}, env...)
	var out, errout bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errout
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatalf("bd %q: %v", args, err)
	}
	code := "0"
	if err != nil {
		code = "1"
	}
	return result{code, out.String(), errout.String()}
}

// capture is a command of the real bd and its result.
type capture struct {
	name string
	line string // the recorded command, unquoted
	result
}

func captures(t *testing.T) []capture {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "captures", "*.cmd"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no captures: %v", err)
	}
	slices.Sort(files)
	var all []capture
	for _, file := range files {
		base := strings.TrimSuffix(file, ".cmd")
		var text [3]string
		for i, ext := range []string{".cmd", ".out", ".err"} {
			data, err := os.ReadFile(base + ext)
			if err != nil {
				t.Fatal(err)
			}
			text[i] = string(data)
		}
		code, line, _ := strings.Cut(strings.TrimSpace(text[0]), " ")
		all = append(all, capture{filepath.Base(base), strings.TrimPrefix(line, "bd "), result{code, text[1], text[2]}})
	}
	return all
}

// spaced lists the recorded commands with arguments that contain spaces.
var spaced = map[string][]string{
	"04-create-full": {
		"create", "Second", "-t", "bug", "-p", "0", "-d", "the desc", "--design", "the design", "--acceptance", "- [ ] a",
		"--notes", "the notes", "-l", "area:x,backend", "--json", "--metadata", `{"k":"v","n":3}`, "--external-ref", "gh-12", "--estimate", "30",
	},
	"16-close": {"close", "gg-rls", "--reason", "done it", "--json"},
}

// usageOnly lists the captures whose standard error continues with the usage of every
// flag, which the fake does not have. Only the first two lines are compared.
var usageOnly = []string{"21-unknown-flag"}

// recorded selects the version of bd that the captures were made with.
const recorded = "FAKEBD_VERSION=1.0.5"

// In a fresh directory, the fake reproduces the captures of bd.
func TestCaptures(t *testing.T) {
	s := newSubject(t, fake(t), recorded)
	for _, c := range captures(t) {
		compare(t, c, s.replay(t, c), s.ids)
	}
}

// The fake and the real bd, which COVEN_REAL_BD names, answer the recorded commands in the same way.
func TestRealKeepsTheContract(t *testing.T) {
	program := os.Getenv("COVEN_REAL_BD")
	if program == "" {
		t.Skip("COVEN_REAL_BD names no bd")
	}
	real := newSubject(t, program)
	var about struct{ Version string }
	if err := json.Unmarshal([]byte(bd(t, program, real.dir, nil, "version", "--json").out), &about); err != nil {
		t.Fatal(err)
	}
	imitation := newSubject(t, fake(t), "FAKEBD_VERSION="+about.Version)
	for _, c := range captures(t) {
		want := real.replay(t, c)
		got := imitation.replay(t, c)
		want.out, want.errout = normal(want.out, real.ids), normal(want.errout, real.ids)
		if c.name != "01-version" { // commit and branch of the build
			compare(t, capture{c.name, c.line, want}, got, imitation.ids)
		}
	}
}

// subject is a program on which the recorded commands are repeated, in a directory of its own.
type subject struct {
	program, dir string
	env          []string
	ids          map[string]string // of the capture -> of this program
}

func newSubject(t *testing.T, program string, env ...string) *subject {
	t.Helper()
	dir := t.TempDir()
	for _, args := range [][]string{{"init", "-q"}, {"config", "user.name", "Tester"}, {"config", "user.email", "t@example.com"}} {
		if out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v: %s", args, err, out)
		}
	}
	return &subject{program, dir, env, map[string]string{}}
}

// replay runs a recorded command with the IDs of this program.
func (s *subject) replay(t *testing.T, c capture) result {
	t.Helper()
	if c.name == "01-version" { // the first command after the database was created
		must(t, bd(t, s.program, s.dir, s.env, "init", "--prefix", "gg", "--stealth", "--skip-agents", "--skip-hooks", "--non-interactive"))
	}
	args := slices.Clone(spaced[c.name])
	if args == nil {
		args = strings.Fields(c.line)
	}
	if got := strings.Join(args, " "); got != c.line {
		t.Fatalf("%s: %q was recorded, not %q", c.name, c.line, got)
	}
	for i, arg := range args {
		if id, ok := s.ids[arg]; ok {
			args[i] = id
		}
	}
	env := s.env
	if strings.Contains(c.name, "-envelope-") {
		env = append(env[:len(env):len(env)], "BD_JSON_ENVELOPE=1")
	}
	got := bd(t, s.program, s.dir, env, args...)
	if args[0] == "create" && c.code == "0" {
		s.ids[idOf(t, c.out)] = idOf(t, got.out)
	}
	return got
}

func idOf(t *testing.T, out string) string {
	t.Helper()
	var i struct{ ID string }
	if err := json.Unmarshal([]byte(out), &i); err != nil || i.ID == "" {
		t.Fatalf("no id in %s: %v", out, err)
	}
	return i.ID
}

func compare(t *testing.T, c capture, got result, ids map[string]string) {
	t.Helper()
	want := c.result
	if slices.Contains(usageOnly, c.name) {
		want.errout, got.errout = head(want.errout), head(got.errout)
	}
	if got.code != want.code {
		t.Errorf("%s: exit code %s, want %s", c.name, got.code, want.code)
	}
	for _, stream := range []struct{ what, got, want string }{{"output", got.out, want.out}, {"errors", got.errout, want.errout}} {
		if a, b := normal(stream.got, ids), normal(stream.want, nil); a != b {
			t.Errorf("%s: %s\n%s\nwant\n%s", c.name, stream.what, a, b)
		}
	}
}

func head(text string) string {
	lines := strings.SplitAfter(text, "\n")
	return strings.Join(lines[:min(2, len(lines))], "")
}

var (
	nanos = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z`)
	times = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)
	uuids = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	paths = regexp.MustCompile(`"/[^"]*"`)
)

// normal replaces the parts that differ each time but keeps their form.
func normal(text string, ids map[string]string) string {
	for _, was := range slices.Sorted(maps.Keys(ids)) {
		text = strings.ReplaceAll(text, ids[was], was)
	}
	text = nanos.ReplaceAllString(text, "TIME.NANOS")
	text = times.ReplaceAllString(text, "TIME")
	text = uuids.ReplaceAllString(text, "UUID")
	return paths.ReplaceAllString(text, `"/PATH"`)
}
