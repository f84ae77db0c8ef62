package git

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
)

// TestMergeApart compares merges of random changes with those of git merge-tree.
func TestMergeApart(t *testing.T) {
	r, _, empty := emptyRepo(t, "git config user.name T; git config user.email t@example.org")
	ctx, random := context.Background(), rand.New(rand.NewPCG(9, 2))
	var blobs []string
	for i := range 4 {
		oid, err := r.Blob(ctx, []byte(strings.Repeat(fmt.Sprintf("line %d\n", i/2), 20+i)))
		if err != nil {
			t.Fatal(err)
		}
		blobs = append(blobs, oid)
	}
	index := r
	index.Index = filepath.Join(t.TempDir(), "index")
	// Trees are made by git itself: entries, mode 0 for none.
	change := func(tree string, modes []string, n int) string {
		var lines []string
		for range n {
			name := []string{"a", "b", "d/a", "d/b", "d/e/a", "d/e/b", "f", "f/g", "h"}[random.IntN(9)]
			mode, oid := modes[random.IntN(len(modes))], blobs[random.IntN(len(blobs))]
			if mode == "0" {
				oid = strings.Repeat("0", 40)
			}
			lines = append(lines, mode+" "+oid+"\t"+name)
		}
		if err := index.Run(ctx, "read-tree", tree); err != nil {
			t.Fatal(err)
		}
		if _, err := index.Feed(ctx, Join(lines), "update-index", "-z", "--add", "--replace", "--index-info"); err != nil {
			t.Fatal(err)
		}
		changed, err := index.Line(ctx, "write-tree")
		if err != nil {
			t.Fatal(err)
		}
		return changed
	}
	commit := func(tree string, parents ...string) string {
		args := []string{"commit-tree", "-m", "x", tree}
		for _, p := range parents {
			args = append(args, "-p", p)
		}
		oid, err := r.Line(ctx, args...)
		if err != nil {
			t.Fatal(err)
		}
		return oid
	}
	files := []string{"100644", "100644", "100755"}
	any := append(files, "120000", "0")
	merged, asked := 0, 0
	for i := range 150 {
		base := commit(change(empty, files, 6))
		first, err := r.Tree(ctx, base)
		if err != nil {
			t.Fatal(err)
		}
		modes := files
		if i%2 == 1 {
			modes = any
		}
		one, two := change(first, modes, 1+random.IntN(2)), change(first, modes, 1+random.IntN(2))
		left, right := commit(one, base), commit(two, base)
		twoBases := i%10 == 0
		if twoBases {
			other := commit(change(first, files, 1))
			left, right = commit(one, base, other), commit(two, base, other)
		}
		got, err := r.MergeApart(ctx, left, right, one)
		if twoBases && err == nil {
			t.Fatal("a merge with two bases was not left to git")
		}
		if errors.Is(err, errAsk) {
			asked++
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		merged++
		want, err := r.Line(ctx, "merge-tree", "--write-tree", "--no-messages", left, right)
		if err != nil || got != want {
			diff, _ := r.Output(ctx, "diff", "--raw", first, one)
			diff2, _ := r.Output(ctx, "diff", "--raw", first, two)
			t.Fatalf("%s, git says %s %v\n%s\n%s", got, want, err, diff, diff2)
		}
	}
	t.Logf("%d merged, %d left to git", merged, asked)
	if merged < 30 || asked < 30 {
		t.Errorf("%d merged, %d left to git: both should be many", merged, asked)
	}
}

// A merge in which a side removed or renamed something, or both sides changed one file, is git's: so are
// merges without a single base.
func TestMergeApartLeavesToGit(t *testing.T) {
	file := func(status byte, path, oid string) Change {
		return Change{Status: status, OldMode: "100644", Mode: "100644", Oid: oid, Path: path}
	}
	link := Change{Status: 'M', OldMode: ModeSubmodule, Mode: ModeSubmodule, Oid: "2", Path: "s"}
	for what, sides := range map[string][2][]Change{
		"removed here":      {{file('D', "a", "")}, {file('A', "b", "1")}},
		"removed there":     {{file('A', "b", "1")}, {file('D', "a", "")}},
		"of another kind":   {{file('T', "a", "1")}, {file('A', "b", "1")}},
		"a submodule":       {{link}, {file('A', "b", "1")}},
		"a new submodule":   {{Change{Status: 'A', Mode: ModeSubmodule, Oid: "2", Path: "s"}}, {file('A', "b", "1")}},
		"a submodule there": {{file('A', "b", "1")}, {link}},
		"the same file":     {{file('M', "a", "1")}, {file('M', "a", "2")}},
		"a file for a dir":  {{file('A', "d", "1")}, {file('A', "d/e", "1")}},
		"a dir for a file":  {{file('A', "d/e/f", "1")}, {file('A', "d", "1")}},
	} {
		if edits, err := disjoint(sides[0], sides[1]); !errors.Is(err, errAsk) {
			t.Errorf("%s: %v, %v", what, edits, err)
		}
	}
	edits, err := disjoint([]Change{file('M', "same", "1"), file('A', "d/x", "2")}, []Change{file('M', "same", "1"), file('A', "d/y", "3")})
	if err != nil || len(edits) != 1 || edits[0].Path != "d/x" {
		t.Errorf("two sides with one file alike: %v, %v", edits, err)
	}
}
