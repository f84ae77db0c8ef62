package protected

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	one = "1111111111111111111111111111111111111111"
	two = "2222222222222222222222222222222222222222"
)

func TestSeverity(t *testing.T) {
	at := func(oid string) Value { return Value{Text: oid} }
	for _, tt := range []struct {
		what             string
		change           Change
		fenced, unfenced Severity
	}{
		{"hook", Change{Kind: Hook, Name: "hooks/x", After: at("sha256:x")}, Stops, Stops},
		{"config", Change{Kind: Config, Name: "config", Before: at("a"), After: at("b")}, Stops, Stops},
		{"branch forward", Change{Kind: Ref, Name: "refs/heads/a", Before: at(one), After: at(two), Forward: true}, Noted, Stops},
		{"branch rewound", Change{Kind: Ref, Name: "refs/heads/a", Before: at(one), After: at(two)}, Noted, Stops},
		{"branch created", Change{Kind: Ref, Name: "refs/heads/a", After: at(two)}, Noted, Stops},
		{"symbolic branch created", Change{Kind: Ref, Name: "refs/heads/a", After: at("ref: refs/heads/b")}, Stops, Stops},
		{"branch deleted", Change{Kind: Ref, Name: "refs/heads/a", Before: at(one)}, Noted, Stops},
		{"branch of a task forward", Change{Kind: Ref, Name: "refs/heads/coven/a", Before: at(one), After: at(two), Forward: true}, Noted, Stops},
		{"branch of a task created", Change{Kind: Ref, Name: "refs/heads/coven/a", After: at(two)}, Noted, Stops},
		{"branch of a task symbolic", Change{Kind: Ref, Name: "refs/heads/coven/a", After: at("ref: refs/heads/b")}, Stops, Stops},
		{"claim", Change{Kind: Ref, Name: "refs/coven/claims/a", Before: at(one), After: at(two)}, Stops, Stops},
		{"tag created", Change{Kind: Ref, Name: "refs/tags/a", After: at(one)}, Noted, Stops},
		{"tag moved forward", Change{Kind: Ref, Name: "refs/tags/a", Before: at(one), After: at(two), Forward: true}, Noted, Stops},
		{"tag deleted", Change{Kind: Ref, Name: "refs/tags/a", Before: at(one)}, Noted, Stops},
		{"remote branch rewound", Change{Kind: Ref, Name: "refs/remotes/o/a", Before: at(one), After: at(two)}, Noted, Noted},
		{"remote branch deleted", Change{Kind: Ref, Name: "refs/remotes/o/a", Before: at(one)}, Noted, Noted},
		{"prefetched", Change{Kind: Ref, Name: "refs/prefetch/remotes/o/a", After: at(one)}, Noted, Noted},
		{"HEAD switched", Change{Kind: Ref, Name: "HEAD", Before: at(one), After: at(two)}, Noted, Stops},
		{"HEAD deleted", Change{Kind: Ref, Name: "HEAD", Before: at(one)}, Stops, Stops},
		{"stash dropped", Change{Kind: Ref, Name: "refs/stash", Before: at(one)}, Noted, Stops},
		{"bisection", Change{Kind: Ref, Name: "refs/bisect/bad", After: at(one)}, Noted, Stops},
		{"note", Change{Kind: Ref, Name: "refs/notes/commits", Before: at(one), After: at(two), Forward: true}, Noted, Stops},
		{"replacement", Change{Kind: Ref, Name: "refs/replace/" + one, After: at(two)}, Stops, Stops},
		{"unknown ref", Change{Kind: Ref, Name: "refs/x/y", After: at(two)}, Noted, Stops},
		{"file", Change{Kind: Checkout, Name: "a", After: at(one)}, Holds, Holds},
		{"index", Change{Kind: Index, Name: "a", After: at(one)}, Holds, Holds},
		{"sibling", Change{Kind: Sibling, Name: "a", After: at(one)}, Holds, Holds},
	} {
		if got := tt.change.Severity(true); got != tt.fenced {
			t.Errorf("%s, fenced: got %s, want %s", tt.what, got, tt.fenced)
		}
		if got := tt.change.Severity(false); got != tt.unfenced {
			t.Errorf("%s, unfenced: got %s, want %s", tt.what, got, tt.unfenced)
		}
	}
	noted := Change{Kind: Ref, Name: "refs/remotes/o/a"}
	for want, all := range map[Severity][]Change{
		"": nil, Noted: {noted}, Holds: {noted, {Kind: Checkout}, noted}, Stops: {{Kind: Checkout}, {Kind: Hook}, noted, {Kind: Index}},
	} {
		if got := Worst(all, false); got != want {
			t.Errorf("worst of %v: got %q, want %q", all, got, want)
		}
	}
}

// Temporary files of git gc and fetch in info are not part of the configuration; others are.
func TestInfo(t *testing.T) {
	for name, want := range map[string]bool{"refs": true, "refs_a1B2c3": true, "refs_": false, "refs_a1B2c3d": false, "exclude": false, "attributes": false, "refsX": false} {
		if got := isInfoOfRefs(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// In a sandbox, a person may configure branches, remotes and submodules. Nothing that names a program is among it.
func TestSeverityOfConfig(t *testing.T) {
	const core = "[core]\n\tbare = false\n"
	for config, want := range map[string]Severity{
		core + "[remote \"o\"]\n\turl = git@host:x\n\tfetch = +refs/heads/*:refs/remotes/o/*\n":          Noted,
		core + "[branch \"topic\"]\n\tremote = o\n\tmerge = refs/heads/topic\n":                          Noted,
		core + "[submodule \"lib\"]\n\tactive = true\n\turl = ../lib\n":                                  Noted,
		"[branch \"x\"]\n\tremote = o\n" + core:                                                          Noted,
		core + "[remote \"o\"]\n\tuploadpack = run\n":                                                    Stops,
		core + "[submodule \"lib\"]\n\tupdate = !run\n":                                                  Stops,
		core + "[remote \"o\"]\n\turl = x\\\n\tmore\n":                                                   Stops,
		core + "[remote \"o\"] url = x\n":                                                                Stops,
		core + "[branch \"x\"]\n\tremote = o\n[core]\n\tfsmonitor = run\n":                               Stops,
		core + "[branch \"x\"]\n\tremote = o\n[ alias ]\n\turl = !run\n":                                 Stops,
		core + "[include]\n\tpath = x\n":                                                                 Stops,
		"":                                                                                               Stops,
		core + "[remote \"o\"]\n\tfetch = +refs/heads/*:refs/remotes/o/*\n[filter \"x\"]\n\tclean = x\n": Stops,
	} {
		value := func(text string) Value {
			return Value{Text: sum([]byte(text)), Content: []byte(text), Mode: "-rw-r--r--"}
		}
		c := Change{Kind: Config, Name: "config", In: InGitDir, Before: value(core), After: value(config)}
		if got := c.Severity(true); got != want {
			t.Errorf("got %s, want %s:\n%s", got, want, config)
		}
		if got := c.Severity(false); got != Stops {
			t.Errorf("unfenced: got %s:\n%s", got, config)
		}
	}
}

// gitDir creates the files of a git directory by hand.
func gitDir(t *testing.T) Source {
	t.Helper()
	dir := t.TempDir()
	from := Source{GitDir: dir, Hooks: []string{filepath.Join(dir, "hooks")}}
	put(t, from, "HEAD", "ref: refs/heads/main\n")
	put(t, from, "refs/heads/main", one+"\n")
	put(t, from, "packed-refs", "# pack-refs with: peeled fully-peeled sorted \n"+two+" refs/heads/main\n"+two+" refs/tags/v1\n^"+one+"\n")
	put(t, from, "config", "[core]\n")
	put(t, from, "hooks/pre-commit", "true\n")
	return from
}

func put(t *testing.T, from Source, name, content string) {
	t.Helper()
	path := filepath.Join(from.GitDir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func state(t *testing.T, from Source, earlier State) State {
	t.Helper()
	s, err := Read(from, earlier)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestRefs(t *testing.T) {
	from := gitDir(t)
	put(t, from, "refs/heads/main.lock", two)
	put(t, from, "refs/remotes/origin/HEAD", "ref: refs/remotes/origin/main\n")
	put(t, from, "refs/heads/broken", "x\n")
	put(t, from, "refs/heads/long", strings.Repeat("x", maxRef+1))
	want := map[string]string{
		"refs/heads/broken": oddPrefix + `broken "x"`, "refs/heads/long": oddPrefix + "unreadable",
		"HEAD": "ref: refs/heads/main", "refs/heads/main": one, "refs/tags/v1": two, "refs/remotes/origin/HEAD": "ref: refs/remotes/origin/main",
	}
	if got := state(t, from, State{}).Refs; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Hooks are all files that are not samples, including those in subdirectories.
func TestHooks(t *testing.T) {
	from := gitDir(t)
	before := state(t, from, State{})
	put(t, from, "hooks/pre-push.sample", "exit 1\n")
	put(t, from, "hooks/pre-push.d/one", "true\n")
	if got := Compare(before, state(t, from, before)); len(got) != 1 || got[0].String() != "hook hooks/pre-push.d/one was added" {
		t.Errorf("got %v", got)
	}
}

// Anything that replaces a file is described. It is neither followed nor does it block.
func TestOddFiles(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"config", "hooks/pre-commit", "refs/heads/main", "packed-refs", "HEAD", "info/exclude", "hooks", "refs"} {
		for kind, replace := range map[string]func(path string) error{
			"pipe":      func(path string) error { return syscall.Mkfifo(path, 0o600) },
			"link":      func(path string) error { return os.Symlink(outside, path) },
			"own link":  func(path string) error { return os.Symlink(filepath.Base(path), path) },
			"directory": func(path string) error { return os.Mkdir(path, 0o755) },
			"huge file": func(path string) error {
				if err := os.WriteFile(path, nil, 0o600); err != nil {
					return err
				}
				return os.Truncate(path, 1<<40)
			},
			"unreadable file": func(path string) error { return os.WriteFile(path, []byte("x"), 0) },
		} {
			t.Run(kind+" as "+name, func(t *testing.T) {
				from := gitDir(t)
				put(t, from, "info/exclude", "x")
				before := state(t, from, State{})
				path := filepath.Join(from.GitDir, name)
				if err := os.RemoveAll(path); err != nil {
					t.Fatal(err)
				}
				if err := replace(path); err != nil {
					t.Skip(err)
				}
				for what, earlier := range map[string]State{"cached": before, "read again": {}} {
					if changes := Compare(before, state(t, from, earlier)); len(changes) == 0 {
						t.Errorf("%s: nothing has changed", what)
					}
				}
			})
		}
	}
}

// A file that was written just before the first read is read again.
func TestFreshFilesAreReadAgain(t *testing.T) {
	from := gitDir(t)
	for i := range 200 {
		text := fmt.Sprintf("%040d\n", i)
		put(t, from, "refs/heads/main", text)
		before := state(t, from, State{})
		next := fmt.Sprintf("%040d\n", i+1)
		put(t, from, "refs/heads/main", next)
		if changes := Compare(before, state(t, from, before)); len(changes) != 1 {
			t.Fatalf("%d: got %v", i, changes)
		}
	}
}

// Unchanged files are not opened again, and the change time shows every change.
func TestOldFilesAreNotReadAgain(t *testing.T) {
	from := gitDir(t)
	old := state(t, from, State{})
	fresh := func() bool {
		return old.cache.packedFresh || old.cache.loose["refs/heads/main"].fresh
	}
	for deadline := time.Now().Add(time.Minute); fresh(); old = state(t, from, State{}) {
		if time.Now().After(deadline) {
			t.Fatal("the files stay fresh")
		}
	}
	old.Refs["refs/heads/main"] = "cached"
	old.cache.packed["refs/tags/v1"] = "cached"
	now := state(t, from, old)
	if now.Refs["refs/heads/main"] != "cached" || now.Refs["refs/tags/v1"] != "cached" {
		t.Errorf("read again: %v", now.Refs)
	}
	path := filepath.Join(from.GitDir, "refs/heads/main")
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	put(t, from, "refs/heads/main", two+"\n")
	if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	if now := state(t, from, old); now.Refs["refs/heads/main"] != two {
		t.Errorf("got %s", now.Refs["refs/heads/main"])
	}
}

func TestIncludes(t *testing.T) {
	t.Setenv("HOME", "/home/x")
	settings := strings.Join([]string{
		"[core]", "\tpath = no", "[include]", "\tpath = a ; comment", "\tPATH = \"b c\" # comment", "[includeIf \"gitdir:~/x/\"]", "path=~/d",
		"[INCLUDE] path = /e", "[alias]", "path = no",
	}, "\n")
	want := []string{"/r/a", "/r/b c", "/home/x/d", "/e"}
	if got := includesOf([]byte(settings), "/r/config"); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	from := gitDir(t)
	put(t, from, "config", "[include]\n\tpath = one\n")
	put(t, from, "one", "[include]\n\tpath = two\n")
	put(t, from, "two", "[include]\n\tpath = config\n")
	before := state(t, from, State{})
	put(t, from, "two", "[core]\n")
	if got := Compare(before, state(t, from, before)); len(got) != 1 || got[0].String() != "git configuration two was changed" {
		t.Errorf("got %v", got)
	}
}
