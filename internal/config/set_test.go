package config

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project/trust"
)

// sources creates the files of a repository and a user.
func sources(t *testing.T, files map[string]string) Sources {
	t.Helper()
	root, getenv := project(t, files)
	if err := os.MkdirAll(filepath.Join(root, ".coven"), 0o755); err != nil {
		t.Fatal(err)
	}
	return Sources{Root: root, Untrusted: trust.NewUntrustedPaths(root), Getenv: getenv}
}

func TestSettings(t *testing.T) {
	s := sources(t, map[string]string{user: "provider: codex\nbudget: {usd: 5}\n", ofRepo: "# ours\nprovider: claude\nrun:\n  max_tasks: 8\n", "repo/go.mod": "module x\n"})
	all, err := s.Settings()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, one := range all {
		names = append(names, one.Key)
		if one.About == "" || strings.Contains(one.About, "\n") {
			t.Errorf("%s is not described: %q", one.Key, one.About)
		}
	}
	if !slices.Equal(names, Keys()) || len(names) < 16 {
		t.Errorf("keys %v", names)
	}
	for key, want := range map[string][3]string{
		"provider":      {"claude", "claude", ".coven/config.yaml:2"},
		"budget":        {"{usd: 5}", "none", filepath.Join(filepath.Dir(s.Root), user) + ":2"},
		"run.max_tasks": {"8", "3", ".coven/config.yaml:4"},
		"timeouts.idle": {"10m", "10m", "default"},
		"checks":        {"[go test ./...]", "none", "detected"},
		"notify":        {"none", "none", "default"},
		"prior_attempt": {"true", "true", "default"},
	} {
		one, err := Find(all, key)
		if got := [3]string{one.Value.String(), one.Default.String(), one.From}; err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", key, got, err, want)
		}
	}
	if _, err := Find(all, "run.max_task"); exit.Code(err) != exit.Usage || !strings.Contains(err.Error(), `did you mean "run.max_tasks"?`) {
		t.Error(err)
	}
	checks, _ := Find(all, "checks")
	idle, _ := Find(all, "timeouts.idle")
	if data, err := json.Marshal([]Value{checks.Value, idle.Value}); err != nil || string(data) != `[["go test ./..."],"10m"]` {
		t.Errorf("%s, %v", data, err)
	}
	if checks.Value.Plain() != "go test ./..." || idle.Value.Plain() != "10m" {
		t.Errorf("%q, %q", checks.Value.Plain(), idle.Value.Plain())
	}
	outside, err := Sources{Getenv: s.Getenv}.Settings()
	if one, _ := Find(outside, "provider"); err != nil || one.Value.String() != "codex" {
		t.Errorf("outside of a repository: %v, %v", one, err)
	}
}

// Only the lines of the key change.
func TestSet(t *testing.T) {
	for name, test := range map[string]struct {
		before, key string
		values      []string
		after       string
	}{
		"no file":           {"", "run.max_tasks", []string{"5"}, "run:\n  max_tasks: 5\n"},
		"only a comment":    {"# a\n", "provider", []string{"codex"}, "# a\nprovider: codex\n"},
		"at the end":        {"provider: codex", "grimoire", []string{"none"}, "provider: codex\ngrimoire: none\n"},
		"an indented offer": {"provider: codex\n\n# worktree:\n  # setup:\n", "provider", []string{"qwen"}, "provider: qwen\n\n# worktree:\n  # setup:\n"},
		"with its comment":  {"# a\nprovider: codex # mine\n# b\ngrimoire: none\n", "provider", []string{"qwen"}, "# a\nprovider: qwen # mine\n# b\ngrimoire: none\n"},
		"a list":            {"checks:\n  # first\n  - a\n  - b\n\n# next\nprovider: x\n", "checks", []string{"go vet ./...", "make: all"}, "checks:\n  - go vet ./...\n  - 'make: all'\n\n# next\nprovider: x\n"},
		"a flow list":       {"checks: [a, b] # mine\n", "checks", []string{"c"}, "checks: # mine\n  - c\n"},
		"a list in YAML":    {"checks: [a]\n", "checks", []string{"[]"}, "checks: []\n"},
		"a long text":       {"checks:\n- |\n  a\n  b\nprovider: x\n", "checks", []string{"c"}, "checks:\n  - c\nprovider: x\n"},
		"in a section":      {"run:\n    max_tasks: 2 # two\n    budget: {usd: 5}\nenv: {pass: [A]}\n", "run.max_tasks", []string{"4"}, "run:\n    max_tasks: 4 # two\n    budget: {usd: 5}\nenv: {pass: [A]}\n"},
		"into a section":    {"run:\n    max_tasks: 2\n    # end of run\n\n# env\nenv: {pass: [A]}\n", "run.budget", []string{"{usd: 1}"}, "run:\n    max_tasks: 2\n    budget: {usd: 1}\n    # end of run\n\n# env\nenv: {pass: [A]}\n"},
		"in a flow section": {"run: {max_tasks: 2, budget: {usd: 5}} # both\n", "run.max_tasks", []string{"4"}, "run: {max_tasks: 4, budget: {usd: 5}} # both\n"},
		"into a flow one":   {"run: {max_tasks: 2}\n", "run.budget", []string{"{usd: 1}"}, "run: {max_tasks: 2, budget: {usd: 1}}\n"},
		"text like a bool":  {"", "default_model", []string{"true"}, "default_model: \"true\"\n"},
		"Windows line ends": {"provider: x\r\n# a\r\nrun:\r\n  max_tasks: 2 # two", "run.max_tasks", []string{"5"}, "provider: x\r\n# a\r\nrun:\r\n  max_tasks: 5 # two\r\n"},
		"after such lines":  {"provider: x\r\ngrimoire: y", "checks", []string{"a"}, "provider: x\r\ngrimoire: y\r\nchecks:\r\n  - a\r\n"},
		"a byte order mark": {"\ufeffprovider: x\ntracker: bd\n", "provider", []string{"codex"}, "\ufeffprovider: codex\ntracker: bd\n"},
		"only such a mark":  {"\ufeff", "provider", []string{"codex"}, "\ufeffprovider: codex\n"},
		"only a beginning":  {"---\n# a\n", "provider", []string{"codex"}, "---\n# a\nprovider: codex\n"},
		"its own mistake":   {"run: {max_tasks: 99} # many\nprovider: x\n", "run.max_tasks", []string{"5"}, "run: {max_tasks: 5} # many\nprovider: x\n"},
		"many lines of it":  {"prices:\n  as_of: 2026-01-01\n  models:\n    - {model: x, input: 1, output: 1}\nprovider: x\n", "prices", []string{"{as_of: 2026-02-02, models: []}"}, "prices: {as_of: 2026-02-02, models: []}\nprovider: x\n"},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"repo/x": ""}
			if test.before != "" {
				files[ofRepo] = test.before
			}
			s := sources(t, files)
			label, err := s.Set(SetRequest{Key: test.key, Values: test.values})
			got, _ := os.ReadFile(filepath.Join(s.Root, ".coven/config.yaml"))
			if err != nil || string(got) != test.after || label != ".coven/config.yaml" {
				t.Errorf("%v\ngot\n%s\nwant\n%s", err, got, test.after)
			}
		})
	}
}

// An invalid value, or a file that cannot be edited, changes nothing.
func TestSetRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		before, key string
		values      []string
		user        bool
		want, next  string
	}{
		"too many":          {"", "run.max_tasks", []string{"99"}, false, "run.max_tasks: 99 is not between 1 and 64", "coven config explain run.max_tasks"},
		"not a number":      {"", "run.max_tasks", []string{"x"}, false, `run.max_tasks: this must be a whole number, not "x"`, "coven config explain run.max_tasks"},
		"two values":        {"", "run.max_tasks", []string{"1", "2"}, false, "1 2 is not a value of run.max_tasks", "coven config explain run.max_tasks"},
		"no YAML":           {"", "budget", []string{"{usd: "}, false, "'{usd: ' is not a value of budget", "coven config explain budget"},
		"empty":             {"", "budget", []string{""}, false, "'' is not a value of budget", "coven config explain budget"},
		"a word":            {"", "tracker", []string{"linear"}, false, `tracker: "linear" is not one of auto, bd, br, jsonl`, "coven config explain tracker"},
		"an unknown key":    {"", "chekcs", []string{"a"}, false, `unknown key "chekcs" (did you mean "checks"?)`, "coven config list"},
		"a section":         {"", "run", []string{"{max_tasks: 2}"}, false, "run is a section, not a key (its keys: run.max_tasks, run.budget, run.collisions, run.remote, run.on)", "coven config list"},
		"without a section": {"", "max_tasks", []string{"2"}, false, `unknown key "max_tasks" (did you mean "run.max_tasks"?)`, "coven config list"},
		"the end of a key":  {"", "model", []string{"opus"}, false, `unknown key "model" (did you mean "default_model"?)`, "coven config list"},
		"the user's":        {"", "allow_ungated", []string{"true"}, false, "allow_ungated is allowed only in your own file", "coven config set --user allow_ungated true"},
		"an invalid file":   {"chekcs: [a]\n", "provider", []string{"x"}, false, `.coven/config.yaml:1:1: unknown key "chekcs" (did you mean "checks"?)`, "${EDITOR:-vi} +1 .coven/config.yaml"},
		"one in one line":   {"{provider: x}\n", "grimoire", []string{"y"}, false, "set grimoire in .coven/config.yaml by hand: its layout cannot be edited", "${EDITOR:-vi} +1 .coven/config.yaml"},
		"an alias":          {"budget: &a {usd: 5}\nrun: {budget: *a}\n", "budget", []string{"{usd: 6}"}, false, "set budget in .coven/config.yaml by hand: its layout cannot be edited", "${EDITOR:-vi} +1 .coven/config.yaml"},
		"a section of text": {"run: 5\n", "run.max_tasks", []string{"6"}, false, `.coven/config.yaml:1:6: this must be keys with values, not "5"`, "${EDITOR:-vi} +1 .coven/config.yaml"},
		"an empty section":  {"run:\n", "run.max_tasks", []string{"6"}, false, ".coven/config.yaml:1:5: the value is missing", "${EDITOR:-vi} +1 .coven/config.yaml"},
		"a key twice":       {"provider: a\nprovider: b\n", "provider", []string{"c"}, false, `.coven/config.yaml:2:1: the key "provider" is given twice (first on line 1)`, "${EDITOR:-vi} +2 .coven/config.yaml"},
		"no text":           {"# a\n# \xff\n", "provider", []string{"c"}, false, ".coven/config.yaml:2:1: this is not YAML: invalid leading UTF-8 octet", "${EDITOR:-vi} +2 .coven/config.yaml"},
		"two documents":     {"provider: a\n---\nprovider: b\n", "tracker", []string{"bd"}, false, ".coven/config.yaml:2:1: a second document begins here (a file holds one document)", "${EDITOR:-vi} +2 .coven/config.yaml"},
		"an ended document": {"provider: a\n...\n", "tracker", []string{"bd"}, false, "set tracker in .coven/config.yaml by hand: its layout cannot be edited", "${EDITOR:-vi} +1 .coven/config.yaml"},
		"another mistake":   {"run: {max_tasks: 99}\nlimits: {same_call: 1}\n", "run.max_tasks", []string{"5"}, false, ".coven/config.yaml:1:18: 99 is not between 1 and 64\n.coven/config.yaml:2:21: 1 is neither 0 (off) nor at least 2", "${EDITOR:-vi} +1 .coven/config.yaml"},
		"a full file":       {"#" + strings.Repeat("x", maxFile-3) + "\n", "provider", []string{"c"}, false, ".coven/config.yaml would be larger than 1048576 bytes", ""},
		"a file too large":  {"#" + strings.Repeat("x", maxFile) + "\n", "provider", []string{"c"}, false, "read .coven/config.yaml: it is larger than 1048576 bytes", "ls -ld .coven/config.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"repo/x": ""}
			if test.before != "" {
				files[ofRepo] = test.before
			}
			s := sources(t, files)
			_, err := s.Set(SetRequest{Key: test.key, Values: test.values, User: test.user})
			got, _ := os.ReadFile(filepath.Join(s.Root, ".coven/config.yaml"))
			if err == nil || err.Error() != test.want || exit.Next(err) != test.next || exit.Code(err) != exit.Usage || string(got) != test.before {
				t.Errorf("got %v\nnext %s\n%s", err, exit.Next(err), got)
			}
		})
	}
}

// Concurrent calls of Set do not overwrite each other.
func TestSetAtOnce(t *testing.T) {
	s := sources(t, map[string]string{"repo/x": ""})
	values := map[string]string{"provider": "codex", "tracker": "bd", "grimoire": "none", "default_model": "opus", "run.max_tasks": "5", "timeouts.idle": "7m"}
	var all sync.WaitGroup
	for key, value := range values {
		for _, user := range []bool{false, true} {
			all.Go(func() {
				if _, err := s.Set(SetRequest{Key: key, Values: []string{value}, User: user}); err != nil {
					t.Error(err)
				}
			})
		}
	}
	all.Wait()
	for _, dir := range []string{filepath.Join(s.Root, ".coven"), filepath.Join(s.Getenv("HOME"), ".config/coven")} {
		text, err := os.ReadFile(filepath.Join(dir, "config.yaml"))
		var c Config
		if _, wrong := c.apply(file{label: "f"}, text); err != nil || wrong != nil {
			t.Fatal(err, wrong)
		}
		for key, value := range values {
			if got := (Value{mustKey(key).of(c)}).Plain(); got != value {
				t.Errorf("%s is %s, want %s:\n%s", key, got, value, text)
			}
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
			t.Errorf("%s contains %v, %v", dir, left, err)
		}
	}
}

// The name of the project's file is relative to the user's directory, so that the next command
// of an error opens it.
func TestSetFromASubdirectory(t *testing.T) {
	s := sources(t, map[string]string{ofRepo: "provider: [\n", "repo/a/b/c": ""})
	s.Dir = filepath.Join(s.Root, "a/b")
	_, err := s.Load()
	if want := "${EDITOR:-vi} +1 ../../.coven/config.yaml"; err == nil || exit.Next(err) != want {
		t.Errorf("%v, next %q", err, exit.Next(err))
	}
	link := filepath.Join(t.TempDir(), "link")
	symlink(t, s.Dir, link)
	s.Dir = link
	if err := os.WriteFile(filepath.Join(s.Root, ".coven/config.yaml"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if label, err := s.Set(SetRequest{Key: "tracker", Values: []string{"bd"}}); err != nil || label != "../../.coven/config.yaml" {
		t.Errorf("%q, %v", label, err)
	}
}

// A file may grow up to the maximum size.
func TestSetFillsAFile(t *testing.T) {
	const added = "provider: codex\n"
	for size, fits := range map[int]bool{maxFile - len(added): true, maxFile - len(added) + 1: false} {
		s := sources(t, map[string]string{ofRepo: "#" + strings.Repeat("x", size-2) + "\n"})
		_, err := s.Set(SetRequest{Key: "provider", Values: []string{"codex"}})
		if c, loadErr := s.Load(); fits != (err == nil) || loadErr != nil || fits != (c.Provider == "codex") {
			t.Errorf("%d bytes: %v, %v, provider %s", size, err, loadErr, c.Provider)
		}
	}
}

// Unintended effects of an edit are detected.
func TestOnlyDiffer(t *testing.T) {
	for _, test := range []struct {
		before, after, path string
		want                bool
	}{
		{"provider: x\ntracker: bd\n", "provider: x\ntracker: br\n", "tracker", true},
		{"tracker: bd\n", "tracker: br\n", "tracker", true},
		{"", "run: {max_tasks: 2}\n", "run.max_tasks", true},
		{"provider: x\ntracker: bd\n", "tracker: br\n", "tracker", false},
		{"tracker: bd\n", "tracker: br\nprovider: x\n", "tracker", false},
		{"provider: x\n", "", "tracker", false},
		{"run: {max_tasks: 2, budget: {usd: 1}}\n", "run: {max_tasks: 3}\n", "run.max_tasks", false},
		{"run: {max_tasks: 2}\nlimits: {same_call: 3}\n", "run: {max_tasks: 3}\nlimits: {same_call: 2}\n", "run.max_tasks", false},
		{"provider: x\n", "provider: [\n", "provider", false},
	} {
		if got := onlyDiffer(test.before, test.after, strings.Split(test.path, ".")); got != test.want {
			t.Errorf("%q to %q: %v", test.before, test.after, got)
		}
	}
}

// A config.yml, which coven does not read, is reported before anything is written.
func TestSetBesideAMisnamedFile(t *testing.T) {
	s := sources(t, map[string]string{"repo/.coven/config.yml": "provider: x\n"})
	_, err := s.Set(SetRequest{Key: "tracker", Values: []string{"bd"}})
	if err == nil || exit.Code(err) != exit.Usage || !strings.Contains(err.Error(), "rename it to config.yaml") {
		t.Error(err)
	}
	if _, err := os.Lstat(filepath.Join(s.Root, ".coven/config.yaml")); err == nil {
		t.Error("config.yaml was written")
	}
}

// If the file is a symbolic link, its target is replaced. The project's file must not link to a target outside of
// the repository, and a dangling link is rejected.
func TestSetThroughALink(t *testing.T) {
	for name, test := range map[string]struct {
		file, link string // the settings file, and its link target
		target     string // the written file; empty if Set fails
		want       string // the error
	}{
		"the user's":       {user, "../../../dotfiles/coven.yaml", "dotfiles/coven.yaml", ""},
		"the project's":    {ofRepo, "../settings/coven.yaml", "repo/settings/coven.yaml", ""},
		"out of it":        {ofRepo, "../../dotfiles/coven.yaml", "", "it is a symbolic link that points outside the repository"},
		"out, to nowhere":  {ofRepo, "../../nowhere.yaml", "", "it is a symbolic link that points outside the repository"},
		"to nowhere":       {ofRepo, "../settings/nowhere.yaml", "", ".coven/config.yaml is a symbolic link to a file that does not exist: nothing was written"},
		"user, to nowhere": {user, "/nowhere/coven.yaml", "", "config.yaml is a symbolic link to a file that does not exist: nothing was written"},
		"to itself":        {user, "config.yaml", "", "too many levels of symbolic links"},
	} {
		t.Run(name, func(t *testing.T) {
			s := sources(t, map[string]string{"dotfiles/coven.yaml": "provider: x\n", "repo/settings/coven.yaml": "provider: x\n"})
			dir := filepath.Dir(s.Root)
			link := filepath.Join(dir, test.file)
			symlink(t, test.link, link)
			_, err := s.Set(SetRequest{Key: "grimoire", Values: []string{"y"}, User: test.file == user})
			if got, readErr := os.Readlink(link); readErr != nil || got != test.link {
				t.Errorf("the link is %q, %v", got, readErr)
			}
			for _, file := range []string{"dotfiles/coven.yaml", "repo/settings/coven.yaml"} {
				want := "provider: x\n"
				if file == test.target {
					want += "grimoire: y\n"
				}
				if got, err := os.ReadFile(filepath.Join(dir, file)); err != nil || string(got) != want {
					t.Errorf("%s: %q, %v", file, got, err)
				}
			}
			if test.target != "" && err != nil {
				t.Error(err)
			}
			if test.target == "" && (err == nil || !strings.Contains(err.Error(), test.want) || exit.Code(err) != exit.Usage || !strings.HasPrefix(exit.Next(err), "ls -l")) {
				t.Errorf("%v, exit code %d, next %q", err, exit.Code(err), exit.Next(err))
			}
		})
	}
}

// In any layout, a key that is set gets its value, and neither other values nor comments change.
func TestSetKeepsTheRest(t *testing.T) {
	entries := []string{
		"checks: [a, 'b: c']\n", "checks:\n- a\n- |\n  # no comment\n  b\n", "provider: codex  # why\n", "grimoire: >-\n  a\n\n",
		"run:\n  max_tasks: 2\n\n  # of all\n  budget:\n    usd: 5\n", "run: {max_tasks: 2}\n", "env:\n      pass: [A,\n        B]\n", "limits: {max_wait: 1h,\n  same_call: 0}\n",
	}
	values := map[string]string{"checks": "x", "provider": "qwen", "grimoire": "none", "run.max_tasks": "7", "run.budget": "{usd: 9}", "env.pass": "C", "limits.same_call": "3", "timeouts.idle": "20m"}
	rapid.Check(t, func(rt *rapid.T) {
		var text strings.Builder
		seen := map[string]bool{}
		for _, e := range rapid.SliceOfN(rapid.SampledFrom(entries), 0, 6).Draw(rt, "entries") {
			name, _, _ := strings.Cut(e, ":")
			if seen[name] {
				continue
			}
			seen[name] = true
			text.WriteString(rapid.SampledFrom([]string{"", "\n", "# about " + name + "\n", "\n# a\n\n# about " + name + "\n"}).Draw(rt, "before") + e)
		}
		text.WriteString(rapid.SampledFrom([]string{"", "# the end\n", "\n\n"}).Draw(rt, "end"))
		key := rapid.SampledFrom(Keys()).Filter(func(k string) bool { return values[k] != "" }).Draw(rt, "key")
		before, path := text.String(), strings.Split(key, ".")
		value, err := mustKey(key).parse([]string{values[key]})
		if err != nil {
			rt.Fatal(err)
		}
		after, err := edit(before, path, value)
		if errors.Is(err, errByHand) {
			rt.Fatalf("not edited:\n%s", before)
		}
		if err != nil || !onlyDiffer(before, after, path) {
			rt.Fatalf("%v\n%s\nbecame\n%s", err, before, after)
		}
		alone, err := edit("", path, value)
		got, want := Default(), Default()
		_, bad := got.apply(file{label: "f"}, []byte(after))
		if _, err2 := want.apply(file{label: "f"}, []byte(alone)); errors.Join(err, err2, bad) != nil {
			rt.Fatalf("%v\n%s", errors.Join(err, err2, bad), after)
		}
		if k := mustKey(key); !reflect.DeepEqual(k.of(got), k.of(want)) {
			rt.Fatalf("%s is %v, want %v:\n%s", key, k.of(got), k.of(want), after)
		}
		for line := range strings.Lines(before) {
			if strings.HasPrefix(line, "# ") && strings.Count(after, line) != strings.Count(before, line) {
				rt.Fatalf("lost %q:\n%s\nbecame\n%s", line, before, after)
			}
		}
	})
}

func mustKey(name string) key {
	k, err := keyNamed(name)
	if err != nil {
		panic(err)
	}
	return k
}
