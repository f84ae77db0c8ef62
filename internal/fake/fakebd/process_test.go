package fakebd

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// repository creates a directory that looks like a checkout, with a database.
func repository(t *testing.T, program string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, ".git", "HEAD"), "ref: refs/heads/main\n")
	must(t, bd(t, program, dir, nil, "init", "-p", "t", "--non-interactive"))
	return dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func must(t *testing.T, r result) string {
	t.Helper()
	if r.code != "0" {
		t.Fatalf("exit code %s: %s%s", r.code, r.out, r.errout)
	}
	return r.out
}

func found(t *testing.T, out string) []string {
	t.Helper()
	var all []struct{ ID string }
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var ids []string
	for _, one := range all {
		ids = append(ids, one.ID)
	}
	return ids
}

// The database is found as in bd.
func TestWhere(t *testing.T) {
	program := fake(t)
	dir := repository(t, program)
	below := filepath.Join(dir, "a", "b")
	write(t, filepath.Join(below, "f"), "")
	tree := t.TempDir() // a linked worktree with its own .beads
	write(t, filepath.Join(dir, ".git", "worktrees", "x", "commondir"), "../..\n")
	write(t, filepath.Join(tree, ".git"), "gitdir: "+filepath.Join(dir, ".git", "worktrees", "x")+"\n")
	write(t, filepath.Join(tree, ".beads", "metadata.json"), "{}")
	for at, env := range map[string][]string{dir: nil, below: nil, tree: nil, t.TempDir(): {"BEADS_DIR=" + filepath.Join(dir, ".beads")}} {
		var where struct{ Path, Prefix string }
		if err := json.Unmarshal([]byte(must(t, bd(t, program, at, env, "where", "--json"))), &where); err != nil {
			t.Fatal(err)
		}
		if where.Path != filepath.Join(dir, ".beads") || where.Prefix != "t" {
			t.Errorf("from %s: %+v", at, where)
		}
	}
	if r := bd(t, program, t.TempDir(), nil, "list", "--json"); r.code != "1" || !strings.HasPrefix(r.errout, "Error: no beads database found") {
		t.Errorf("nowhere: %+v", r)
	}
}

// ready stops at 100 and reports this on standard error. It lists epics, assigned issues,
// and the newest first.
func TestReadyOfBd(t *testing.T) {
	program := fake(t)
	dir := repository(t, program)
	var lines strings.Builder
	for i := range 110 {
		fmt.Fprintf(&lines, `{"id":"t-%03d","title":"T","status":"open","priority":2,"issue_type":"task","created_at":"2026-01-01T00:%02d:%02dZ","updated_at":"2026-01-01T00:00:00Z"}`+"\n", i, i/60, i%60)
	}
	lines.WriteString(`{"id":"t-epic","title":"E","status":"open","priority":0,"issue_type":"epic","created_at":"2026-01-01T00:00:00Z","updated_at":"2026-01-01T00:00:00Z"}` + "\n")
	lines.WriteString(`{"id":"t-bob","title":"B","status":"open","priority":1,"issue_type":"task","assignee":"bob","created_at":"2026-01-01T00:00:00Z","updated_at":"2026-01-01T00:00:00Z"}` + "\n")
	write(t, filepath.Join(dir, "in.jsonl"), lines.String())
	must(t, bd(t, program, dir, nil, "import", "in.jsonl"))
	r := bd(t, program, dir, nil, "ready", "--json")
	if ids := found(t, must(t, r)); len(ids) != 100 || !slices.Equal(ids[:3], []string{"t-epic", "t-bob", "t-109"}) || !strings.Contains(r.errout, "Showing 100 of 112") {
		t.Errorf("%d ready: %v; %s", len(ids), ids[:3], r.errout)
	}
	if ids := found(t, must(t, bd(t, program, dir, nil, "ready", "--json", "-n", "0", "--exclude-type", "epic", "--unassigned"))); len(ids) != 110 {
		t.Errorf("%d ready without limit", len(ids))
	}
	if ids := found(t, must(t, bd(t, program, dir, nil, "show", "00", "--json", "109"))); !slices.Equal(ids, []string{"t-109"}) {
		t.Errorf("parts of ids: %v", ids)
	}
}

// Of many concurrent claims one succeeds, and the others learn the winner.
func TestClaimsAtOnce(t *testing.T) {
	program := fake(t)
	dir := repository(t, program)
	id := strings.TrimSpace(must(t, bd(t, program, dir, nil, "create", "One", "--silent")))
	results := make([]result, 8)
	var all sync.WaitGroup
	for i := range results {
		all.Go(func() {
			results[i] = bd(t, program, dir, []string{"FAKEBD_FAULT=meet=8"}, fmt.Sprintf("--actor=w%d", i), "update", id, "--claim", "--json")
		})
	}
	all.Wait()
	won := slices.IndexFunc(results, func(r result) bool { return r.code == "0" })
	if won < 0 {
		t.Fatalf("nobody won: %+v", results)
	}
	for i, r := range results {
		line := fmt.Sprintf("Error claiming %s: issue already claimed by w%d\n", id, won)
		if i != won && (r.code != "1" || !strings.HasPrefix(r.errout, line+`{"error":"1 of 1 issues failed to update","failed":[{"id":`) || r.out != "") {
			t.Errorf("w%d: %+v", i, r)
		}
	}
	if n, err := MaxAtOnce(filepath.Join(dir, ".beads")); err != nil || n != 8 {
		t.Errorf("%d at once, %v", n, err)
	}
}

// An unknown fault is not an error of bd.
func TestUnknownFault(t *testing.T) {
	program := fake(t)
	dir := repository(t, program)
	if r := bd(t, program, dir, []string{"FAKEBD_FAULT=explode"}, "list"); r.code != "1" || !strings.Contains(r.errout, "unknown fault") {
		t.Errorf("%+v", r)
	}
}
