package permission_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/permission"
)

// K-04: File tools can access the worktree, except for the files of git and coven in it.
func TestDecidePath(t *testing.T) {
	outside := t.TempDir()
	root := filepath.Join(t.TempDir(), "w")
	must(t, os.MkdirAll(filepath.Join(root, "src"), 0o755))
	must(t, os.WriteFile(filepath.Join(outside, "secret"), nil, 0o600))
	must(t, os.Symlink(outside, filepath.Join(root, "out")))
	must(t, os.Symlink("../..", filepath.Join(root, "src", "up")))
	must(t, os.Symlink("nowhere/../../gone", filepath.Join(root, "dangling")))
	must(t, os.Symlink(".git", filepath.Join(root, "g")))
	must(t, os.Symlink("src", filepath.Join(root, "in")))
	must(t, os.Symlink("loop", filepath.Join(root, "loop")))

	tests := []struct {
		path  string
		allow bool
	}{
		{filepath.Join(root, "src", "new", "file.go"), true},
		{"src/app.go", true},
		{"in/app.go", true},
		{"src/../src/app.go", true},
		{".gitignore", true},
		{".github/workflows/ci.yml", true},
		{"src/.coven/x", true},
		{root, true},

		{"..", false},
		{"../w2/x", false},
		{root + "2/x", false},
		{"/etc/passwd", false},
		{filepath.Join(outside, "secret"), false},
		{"out/secret", false},
		{"out/../secret", false},
		{"in/../../secret", false},
		{"src/up/x", false},
		{"dangling", false},
		{".git", false},
		{".git/hooks/pre-commit", false},
		{".GIT/config", false},
		{"vendor/x/.git/config", false},
		{"g/config", false},
		{".coven/config.yaml", false},
		{".Coven/config.yaml", false},
		{"~/x", false},
		{"", false},
		{"a\x00b", false},
		{"loop/x", false},
	}
	for _, name := range []permission.Name{permission.FileRead, permission.FileWrite} {
		for _, tt := range tests {
			if got := decide(root, name, tt.path); got.Allowed() != tt.allow || got.Reason == "" {
				t.Errorf("%s %q = %v (%s), want %v", name, tt.path, got.Allowed(), got.Reason, tt.allow)
			}
		}
	}
}

func TestDecideOther(t *testing.T) {
	if d := permission.OfBuild("/w").Decide(permission.Request{Permission: permission.BashExecute, Command: "ls"}); !d.Allowed() {
		t.Errorf("bash.execute: %s", d.Reason)
	}
	if d := permission.OfBuild("/w").Decide(permission.Request{Permission: permission.Unknown}); d.Allowed() {
		t.Error("an unknown tool is allowed")
	}
	if d := permission.OfBuild("/w").Decide(permission.Request{Permission: permission.FileRead, Path: "relative"}); d.Allowed() {
		t.Error("an unresolved path is allowed")
	}
}

// A path is refused if cleaning it changes the file that it refers to, even if both files are inside.
func TestResolveAmbiguous(t *testing.T) {
	root := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(root, "a", "b"), 0o755))
	must(t, os.Symlink("a/b", filepath.Join(root, "link")))
	_, err := permission.Resolve(root, "link/../x")
	if err == nil || !strings.Contains(err.Error(), "name the file directly") {
		t.Errorf("Resolve = %v", err)
	}
}

func FuzzResolve(f *testing.F) {
	for _, seed := range []string{"a", "../a", "in/../../x", "/etc", "out/./x", "in//x", "..."} {
		f.Add(seed)
	}
	base := f.TempDir()
	root := filepath.Join(base, "w")
	must(f, os.MkdirAll(filepath.Join(root, "a"), 0o755))
	must(f, os.Symlink("a", filepath.Join(root, "in")))
	must(f, os.Symlink(base, filepath.Join(root, "out")))
	f.Fuzz(func(t *testing.T, path string) {
		place, err := permission.Resolve(root, path)
		if err != nil {
			return
		}
		if !filepath.IsAbs(place) || filepath.Clean(place) != place {
			t.Fatalf("Resolve(%q) = %q, which is not clean", path, place)
		}
		again, err := permission.Resolve(root, place)
		if err != nil || again != place {
			t.Fatalf("Resolve(%q) = %q, then %q, %v", path, place, again, err)
		}
	})
}

func decide(root string, name permission.Name, path string) permission.Decision {
	place, err := permission.Resolve(root, path)
	if err != nil {
		return permission.Decision{Reason: err.Error()}
	}
	return permission.OfBuild(root).Decide(permission.Request{Permission: name, Path: place})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A reader is denied everything but reading, even if its definition grants more.
func TestOfReader(t *testing.T) {
	var all []permission.Rule
	for _, name := range permission.Names() {
		all = append(all, permission.Rule{Permission: name, Pattern: permission.Everything, Action: permission.Allow})
	}
	for _, req := range []permission.Request{
		{Permission: permission.FileWrite, Path: "/w/a"}, {Permission: permission.BashExecute, Command: "ls"}, {Permission: permission.Unknown},
	} {
		for _, own := range [][]permission.Rule{nil, all} {
			if d := permission.OfReader("/w", "reviewer", own, nil, nil).Decide(req); d.Allowed() {
				t.Errorf("%+v: %+v", req, d)
			}
		}
	}
	secret := []permission.Rule{{Permission: permission.FileRead, Pattern: "/secret", Action: permission.Deny}}
	if d := permission.OfReader("/w", "careful", secret, nil, nil).Decide(permission.Request{Permission: permission.FileRead, Path: "/w/secret"}); d.Allowed() {
		t.Errorf("its definition denies it: %+v", d)
	}
	if d := permission.OfReader("/w", "reviewer", nil, nil, nil).Decide(permission.Request{Permission: permission.FileRead, Path: "/w/a"}); !d.Allowed() {
		t.Errorf("%+v", d)
	}
}

// The reported permissions of an agent never exceed those of its ancestors.
func TestGrantsAreThoseOfTheChain(t *testing.T) {
	reader := permission.OfPrimary("/w", "reader", []permission.Rule{{Permission: permission.FileRead, Pattern: "/**", Action: permission.Allow}}, nil, nil)
	wide := []permission.Rule{
		{Permission: permission.FileWrite, Pattern: "/**", Action: permission.Allow},
		{Permission: permission.BashExecute, Pattern: "/**", Action: permission.Allow},
	}
	child := permission.OfSubagent(reader, "wide", wide, nil, nil, nil)
	if got := permission.Join(child.Grants()); got != "FilesystemRead, SemanticSearch" {
		t.Errorf("the child of a reader has %s", got)
	}
	writer := permission.OfPrimary("/w", "writer", wide, nil, nil)
	child = permission.OfSubagent(permission.OfSubagent(writer, "wide", wide, nil, nil, []permission.Name{permission.BashExecute}), "wide", wide, nil, nil, nil)
	if got := permission.Join(child.Grants()); got != "FilesystemRead, SemanticSearch, bash.execute" {
		t.Errorf("the child of one that was restricted has %s", got)
	}
}

// An agent that may not write files may not redirect output to an unknown file, if its rules distinguish
// commands.
func TestUnknownRedirectionWithoutWriting(t *testing.T) {
	rules := []permission.Rule{{Permission: permission.BashExecute, Pattern: "echo *", Action: permission.Allow}}
	write := permission.Rule{Permission: permission.FileWrite, Pattern: "/**", Action: permission.Allow}
	request := permission.Request{Permission: permission.BashExecute, Command: `echo x > "$FILE"`}
	if d := permission.OfPrimary("/w", "a", rules, nil, nil).Decide(request); d.Allowed() {
		t.Errorf("without file.write: %+v", d)
	}
	if d := permission.OfPrimary("/w", "a", append(rules, write), nil, nil).Decide(request); !d.Allowed() {
		t.Errorf("with file.write: %+v", d)
	}
}

// A redirection applies to the target of links. After a cd, a relative target is unknown.
func TestRedirectionsByPlace(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	must(t, os.MkdirAll(filepath.Join(root, "docs"), 0o755))
	must(t, os.MkdirAll(filepath.Join(root, "src"), 0o755))
	must(t, os.Symlink("../src", filepath.Join(root, "docs", "link")))
	must(t, os.Symlink("src/app.go", filepath.Join(root, "file")))
	rule := func(name permission.Name, pattern string, action permission.Action) permission.Rule {
		return permission.Rule{Permission: name, Pattern: pattern, Action: action}
	}
	policy := permission.OfPrimary(root, "a", []permission.Rule{
		rule(permission.BashExecute, "/**", permission.Allow), rule(permission.BashExecute, "rm *", permission.Deny),
		rule(permission.FileWrite, "/**", permission.Allow), rule(permission.FileWrite, "/src/**", permission.Deny),
	}, nil, nil)
	generates := permission.OfPrimary(root, "a", []permission.Rule{
		rule(permission.BashExecute, "python *", permission.Allow), rule(permission.FileWrite, "/docs/**", permission.Allow),
	}, nil, nil)
	if d := generates.Decide(permission.Request{Permission: permission.BashExecute, Command: "python make.py > docs/a"}); !d.Allowed() {
		t.Errorf("a program cannot change the directory of the shell: %+v", d)
	}
	open := permission.OfPrimary(root, "a", []permission.Rule{
		rule(permission.BashExecute, "/**", permission.Allow), rule(permission.BashExecute, "ls *", permission.Allow),
		rule(permission.FileWrite, "/**", permission.Allow), rule(permission.FileWrite, "/src/**", permission.Deny),
	}, nil, nil)
	if d := open.Decide(permission.Request{Permission: permission.BashExecute, Command: "$CD src; echo x > a"}); d.Allowed() {
		t.Errorf("a command that nobody knows may be cd: %+v", d)
	}
	for command, allowed := range map[string]bool{
		"echo x > docs/a":               true,
		"echo x > src/a":                false,
		"echo x > docs/link/a":          false,
		"echo x > file":                 false,
		"echo x > docs/../src/a":        false,
		"echo x > docs/link/../docs/a":  false,
		"cd src && echo x > a":          false,
		"pushd src; echo x > a":         false,
		"(cd docs); echo x > a":         false, // the target is unknown, so a person is asked
		"cd docs && echo x > /dev/null": true,
		"eval cd src; echo x > a":       false, "$CD src; echo x > a": false,
		"cd docs && ls":                         true,
		"echo cd && echo x > docs/a":            true,
		"cd docs && echo > " + root + "/docs/a": true,
	} {
		if d := policy.Decide(permission.Request{Permission: permission.BashExecute, Command: command}); d.Allowed() != allowed {
			t.Errorf("%s: %+v", command, d)
		}
	}
}
