package task

import (
	"errors"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestOpen(t *testing.T) {
	const dolt, sqlite = `{"database":"dolt","backend":"dolt"}`, `{"database":"beads.db","jsonl_export":"issues.jsonl"}`
	for name, c := range map[string]struct {
		files        map[string]string
		path, choice string
		kind, where  string
	}{
		"nothing":                {nil, "bd br", "", JSONL, "issues.jsonl"},
		"a file":                 {map[string]string{"issues.jsonl": ""}, "bd br", Auto, JSONL, "issues.jsonl"},
		"dolt":                   {map[string]string{"metadata.json": dolt, "issues.jsonl": ""}, "bd br", Auto, BD, "bd ("},
		"dolt by directory":      {map[string]string{"embeddeddolt/x/f": ""}, "bd", "", BD, "bd ("},
		"something new":          {map[string]string{"metadata.json": `{"backend":"postgres"}`}, "bd", "", BD, "bd ("},
		"sqlite, br":             {map[string]string{"metadata.json": sqlite, "beads.db": "", "issues.jsonl": ""}, "bd br", "", BR, "br ("},
		"sqlite, no br":          {map[string]string{"metadata.json": sqlite, "beads.db": "", "issues.jsonl": ""}, "bd", "", JSONL, "issues.jsonl"},
		"sqlite, cloned":         {map[string]string{"metadata.json": sqlite, "issues.jsonl": ""}, "br", "", JSONL, "issues.jsonl"},
		"jsonl for dolt":         {map[string]string{"metadata.json": dolt, "issues.jsonl": ""}, "bd br", JSONL, JSONL, "issues.jsonl"},
		"jsonl for sqlite":       {map[string]string{"metadata.json": sqlite, "beads.db": ""}, "br", JSONL, JSONL, "issues.jsonl"},
		"bd for a file":          {map[string]string{"issues.jsonl": ""}, "bd br", BD, BD, "bd ("},
		"br for a file":          {map[string]string{"issues.jsonl": ""}, "bd br", BR, BR, "br ("},
		"bd for broken metadata": {map[string]string{"metadata.json": "{"}, "bd", BD, BD, "bd ("},
		"bd for a redirect":      {map[string]string{"redirect": "../x"}, "bd", BD, BD, "bd ("},
	} {
		t.Run(name, func(t *testing.T) {
			tr, err := openIn(t, c.files, c.path, c.choice)
			if err != nil {
				t.Fatal(err)
			}
			if tr.Kind() != c.kind || !strings.Contains(tr.Where(), c.where) || !strings.Contains(tr.Where(), directory) {
				t.Errorf("%s at %s", tr.Kind(), tr.Where())
			}
		})
	}
}

// openIn opens a repository with files in .beads and with the programs in path
// on PATH.
func openIn(t *testing.T, files map[string]string, path, choice string) (Tracker, error) {
	t.Helper()
	within := map[string]string{"f": ""}
	for name, text := range files {
		within[filepath.Join(directory, name)] = text
	}
	root := place(t, within)
	git(t, root, "init", "-q")
	return Open(Options{
		Dir: root, MainCheckout: root, LockDir: t.TempDir(), Choice: choice, Getenv: environment(),
		LookPath: func(name string) (string, error) {
			if slices.Contains(strings.Fields(path), name) {
				return "/bin/" + name, nil
			}
			return "", exec.ErrNotFound
		},
	})
}

func TestOpenRefuses(t *testing.T) {
	const dolt = `{"database":"dolt","backend":"dolt"}`
	backend, redirect := (*BackendError)(nil), (*RedirectError)(nil)
	for name, c := range map[string]struct {
		files  map[string]string
		choice string
		is     func(error) bool
		says   []string
	}{
		"dolt without bd": {
			map[string]string{"metadata.json": dolt},
			Auto, func(err error) bool { return errors.As(err, &backend) },
			[]string{"dolt database", "bd is not on PATH", "npm install -g @beads/bd", "bd export"},
		},
		"dolt with a file": {
			map[string]string{"metadata.json": dolt, "issues.jsonl": ""},
			"", func(err error) bool { return errors.As(err, &backend) },
			[]string{"tracker: jsonl", "issues.jsonl"},
		},
		"br wanted":   {nil, BR, func(err error) bool { return errors.As(err, &backend) }, []string{"the tracker is set to br", "br is not on PATH", "beads_rust"}},
		"odd choice":  {nil, "sql", func(err error) bool { return errors.Is(err, ErrInvalid) }, []string{`"sql"`, "auto, bd, br, jsonl"}},
		"a redirect":  {map[string]string{"redirect": "../x"}, "", func(err error) bool { return errors.As(err, &redirect) }, []string{"BEADS_DIR"}},
		"broken":      {map[string]string{"metadata.json": "{"}, "", func(err error) bool { return err != nil }, []string{"metadata.json"}},
		"a path name": {map[string]string{"metadata.json": `{"jsonl_export":"../x.jsonl"}`}, "", func(err error) bool { return err != nil }, []string{"jsonl_export"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := openIn(t, c.files, "", c.choice)
			if !c.is(err) {
				t.Fatalf("got %v", err)
			}
			for _, word := range c.says {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%q is not in: %v", word, err)
				}
			}
		})
	}
}

// In a linked worktree, the main checkout's database is used, and the
// program runs there. BEADS_DIR is relative to the user's directory.
func TestOpenFromAWorktree(t *testing.T) {
	s := bdSite(t, "", nil)
	git(t, s.dir, "add", "f")
	git(t, s.dir, "commit", "-qm", "x")
	tree := filepath.Join(s.dir, ".coven", "worktrees", "x")
	git(t, s.dir, "worktree", "add", "-q", "--detach", tree)
	want := add(t, s.cli(t), New{Title: "one"})
	for name, c := range map[string]struct{ dir, env string }{
		"worktree":  {tree, ""},
		"BEADS_DIR": {t.TempDir(), "BEADS_DIR=" + filepath.Join(s.dir, directory)},
		"relative":  {tree, "BEADS_DIR=../../../" + directory},
	} {
		tr, err := Open(Options{
			Dir: c.dir, MainCheckout: s.dir, Getenv: environment(c.env), Environ: append([]string{c.env}, s.env...),
			LookPath: func(string) (string, error) { return s.program, nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		if all, err := tr.List(t.Context()); err != nil || ids(all) != want.ID {
			t.Errorf("%s: %s, %v", name, ids(all), err)
		}
	}
}
