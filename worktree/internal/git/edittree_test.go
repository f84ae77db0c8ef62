package git

import (
	"context"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
)

// TestEditTree compares random changes of trees with those of git update-index.
func TestEditTree(t *testing.T) {
	r, _, tree := emptyRepo(t, "true")
	ctx, random := context.Background(), rand.New(rand.NewPCG(7, 1))
	var blobs []string
	for _, content := range []string{"a", "b", "c"} {
		oid, err := r.Blob(ctx, []byte(content))
		if err != nil {
			t.Fatal(err)
		}
		blobs = append(blobs, oid)
	}
	names := []string{"a", "a.b", "a0", "ab", "b c", "é", "x\ny", "z"}
	modes := []string{"100644", "100755", "120000", "0", "0"}
	index := r
	index.Index = filepath.Join(t.TempDir(), "index")
	edited := 0
	for range 300 {
		var edits []Entry
		for range 1 + random.IntN(4) {
			parts := make([]string, 1+random.IntN(3))
			for i := range parts {
				parts[i] = names[random.IntN(len(names))]
			}
			edits = append(edits, Entry{Mode: modes[random.IntN(len(modes))], Oid: blobs[random.IntN(len(blobs))], Path: strings.Join(parts, "/")})
		}
		got, err := r.EditTree(ctx, tree, edits)
		if errors.Is(err, errAsk) {
			continue // they contradict each other
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := index.Run(ctx, "read-tree", tree); err != nil {
			t.Fatal(err)
		}
		var lines []string
		for _, e := range edits {
			if e.Mode == "0" {
				e.Oid = strings.Repeat("0", 40)
			}
			lines = append(lines, e.Mode+" "+e.Oid+"\t"+e.Path)
		}
		if _, err := index.Feed(ctx, Join(lines), "update-index", "-z", "--add", "--replace", "--index-info"); err != nil {
			t.Fatal(err)
		}
		want, err := index.Line(ctx, "write-tree")
		if err != nil || got != want {
			t.Fatalf("%q\n%s, git says %s %v", lines, got, want, err)
		}
		tree = got
		edited++
	}
	if edited < 200 {
		t.Errorf("only %d of 300 were edited in process", edited)
	}
	shell(t, r.WorkTree, "git fsck --strict --no-dangling")
	for _, name := range []string{".git/config", "a/.GIT", "../x", "/x", "a//b", ""} {
		if got, err := r.EditTree(ctx, tree, []Entry{{Mode: "100644", Oid: blobs[0], Path: name}}); err == nil {
			t.Errorf("%q is in %s", name, got)
		}
	}
	if got, err := r.EditTree(ctx, tree, []Entry{{Mode: "100644", Oid: "x", Path: "y"}}); err == nil {
		t.Errorf("an entry without an object is in %s", got)
	}
}
