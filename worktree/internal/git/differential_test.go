package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/coven-run/coven/worktree/internal/object"
	"github.com/coven-run/coven/worktree/internal/ref"
)

// shell runs a command in dir with a fixed identity and returns its output.
func shell(t testing.TB, dir, command string) string {
	t.Helper()
	cmd := exec.Command("sh", "-c", command)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(),
		"HOME="+dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@example.org")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	return strings.TrimSpace(string(out))
}

// importer writes a history for git fast-import.
type importer struct {
	input  bytes.Buffer
	random *rand.Rand
	marks  int
}

func (im *importer) write(format string, args ...any) {
	_, _ = fmt.Fprintf(&im.input, format, args...)
}

// names are paths that git quotes, sorts in unusual ways, or replaces with each other.
var names = []string{
	"a", "a/b", "a.txt", "a-", "a0", "a/b/c", "b", "line\nfeed", "tab\tname", "\xff\xfe", "é", " leading", "quote\"", "back\\slash",
	"deep/er/and/deeper/file", "deep.er", "deep/er.txt", "z", ".dot", "-dash", ":colon", "[glob]*", "sub",
}

// commit adds a commit with random changes to its first parent. Marks are numbered from 1.
func (im *importer) commit(branch string, time int, parents ...int) int {
	im.marks++
	im.write("commit %s\nmark :%d\ncommitter A <a@example.org> %d +0000\ndata 2\nm\n", branch, im.marks, time)
	for i, p := range parents {
		im.write("%s :%d\n", []string{"from", "merge"}[min(i, 1)], p)
	}
	for range 1 + im.random.IntN(3) {
		im.edit()
	}
	im.write("\n")
	return im.marks
}

func (im *importer) edit() {
	name := names[im.random.IntN(len(names))]
	quoted := `"` + strings.NewReplacer("\\", "\\\\", "\n", "\\n", `"`, `\"`).Replace(name) + `"`
	switch im.random.IntN(8) {
	case 0:
		im.write("D %s\n", quoted)
	case 1:
		im.write("M 120000 inline %s\ndata 4\nlink\n", quoted)
	case 2:
		im.write("M 160000 %040x %s\n", im.random.Uint64()|1, quoted)
	case 3:
		im.write("M 100755 inline %s\ndata 3\n#!x\n", quoted)
	default:
		text := strings.Repeat(fmt.Sprintln(im.random.IntN(50)), 1+im.random.IntN(20))
		im.write("M 100644 inline %s\ndata %d\n%s\n", quoted, len(text), text)
	}
}

// history imports random commits: branches, merges, criss-cross merges, unrelated roots, and clocks that go
// back.
func history(t testing.TB, dir string, seed uint64, commits int) {
	t.Helper()
	im := &importer{random: rand.New(rand.NewPCG(seed, 1))}
	tips := make([]int, 4)
	for i := range commits {
		b := im.random.IntN(len(tips))
		time := 1_700_000_000 + i*10 - im.random.IntN(2)*im.random.IntN(500)
		branch := fmt.Sprintf("refs/heads/b%d", b)
		switch other := im.random.IntN(len(tips)); {
		case tips[b] == 0 && tips[other] != 0 && im.random.IntN(3) > 0:
			tips[b] = im.commit(branch, time, tips[other])
		case tips[b] == 0:
			tips[b] = im.commit(branch, time)
		case other != b && tips[other] != 0 && im.random.IntN(4) == 0:
			tips[b] = im.commit(branch, time, tips[b], tips[other])
		default:
			tips[b] = im.commit(branch, time, tips[b])
		}
	}
	im.write("done\n")
	cmd := exec.Command("git", "fast-import", "--quiet", "--done", "--force")
	cmd.Dir, cmd.Stdin = dir, &im.input
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// answers queries r for everything about the commits and refs. Errors are part of the result.
func answers(r Repo, commits, refs []string) []string {
	ctx := context.Background()
	var all []string
	say := func(question string, answer any, err error) {
		kind := ""
		switch {
		case errors.Is(err, ref.ErrNoRef), errors.Is(err, ErrNoMergeBase):
			kind = err.Error()
		case err != nil:
			kind = "error"
		}
		all = append(all, fmt.Sprintf("%s: %#v %s", question, answer, kind))
	}
	for _, name := range refs {
		oid, err := r.Ref(ctx, name)
		say("ref "+name, oid, err)
	}
	for _, dir := range []string{"refs/heads/", "refs/tags/", "refs/", "refs/none/"} {
		found, err := r.Refs(ctx, dir)
		say("refs "+dir, found, err)
	}
	branch, err := r.Branch(ctx)
	say("branch", branch, err)
	head, err := r.Head(ctx)
	say("head", head, err)
	for i, oid := range commits {
		c, err := r.Commit(ctx, oid)
		say("commit "+oid, c, err)
		tree, err := r.Tree(ctx, oid)
		say("tree "+oid, tree, err)
		has, err := r.Has(ctx, oid, "commit")
		say("has "+oid, has, err)
		entries, err := r.Entries(ctx, tree)
		say("entries "+oid, entries, err)
		some, err := r.Entries(ctx, oid, "a", "deep/er", "sub", "none")
		say("some entries "+oid, some, err)
		var blobs []string
		for _, e := range entries {
			if e.Mode == object.ModeSubmodule {
				continue
			}
			if blobs = append(blobs, e.Oid); len(blobs) < 4 {
				content, err := r.File(ctx, oid, e.Path)
				say("file "+e.Path, content, err)
			}
		}
		slices.Sort(blobs)
		sizes, err := r.Sizes(ctx, blobs)
		say("sizes "+oid, sizes, err)
		for _, other := range commits[max(0, i-2):min(len(commits), i+3)] {
			changes, err := r.Changes(ctx, oid, other)
			say("changes "+oid+" "+other, changes, err)
			is, err := r.IsAncestor(ctx, oid, other)
			say("ancestor "+oid+" "+other, is, err)
			base, err := r.MergeBase(ctx, oid, other)
			say("base "+oid+" "+other, base, err)
		}
	}
	return all
}

func compare(t *testing.T, dir string, commits, refs []string) {
	t.Helper()
	want := answers(Repo{Dir: dir}, commits, refs)
	got := answers(Repo{Dir: dir, Store: OpenStore(dir)}, commits, refs)
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("go-git: %s\ngit:    %s", got[i], want[i])
		}
	}
}

// everyNth lists about n commits of all refs.
func everyNth(t testing.TB, dir string, n int) []string {
	all := strings.Fields(shell(t, dir, "git rev-list --all"))
	step := max(1, len(all)/n)
	var some []string
	for i := 0; i < len(all); i += step {
		some = append(some, all[i])
	}
	return some
}

func refNames(t testing.TB, dir string) []string {
	return append(strings.Fields(shell(t, dir, "git for-each-ref --format='%(refname)'")), "refs/heads/none", "refs/heads/b0/below", "refs/heads")
}

// TestDifferential compares the answers of git and of the Store for generated repositories of each layout.
func TestDifferential(t *testing.T) {
	for name, c := range map[string]struct {
		prepare string // creates the repository from r.git, a bare repository with a history
		git     string // the git directory, if it is not r.git
	}{
		"loose":                {prepare: "true"},
		"packed":               {prepare: "git -C r.git gc -q"},
		"packed refs":          {prepare: "git -C r.git pack-refs --all && git -C r.git update-ref refs/heads/b0 refs/heads/b1"},
		"many packs":           {prepare: "cd r.git && git repack -dq && git update-ref refs/x $(git commit-tree -m x b1^{tree}) && git repack -q"},
		"reference deltas":     {prepare: "cd r.git && git -c repack.useDeltaBaseOffset=false repack -adfq"},
		"commit graph":         {prepare: "cd r.git && git repack -adq && git commit-graph write --reachable"},
		"multi-pack index":     {prepare: "cd r.git && git repack -dq && git multi-pack-index write"},
		"absolute alternates":  {prepare: "git clone -q --bare --shared r.git s.git && git -C s.git update-ref refs/x $(git -C s.git commit-tree -m x b1^{tree})", git: "s.git"},
		"relative alternates":  {prepare: "git clone -q --bare --shared r.git s.git && echo ../../r.git/objects >s.git/objects/info/alternates", git: "s.git"},
		"alternates in a row":  {prepare: "git clone -q --bare --shared r.git s.git && git clone -q --bare --shared s.git u.git", git: "u.git"},
		"quoted alternates":    {prepare: `git clone -q --bare --shared r.git s.git && printf '"%s/r.git/objects"\n' "$PWD" >s.git/objects/info/alternates`, git: "s.git"},
		"missing alternates":   {prepare: "mkdir -p r.git/objects/info && echo /nonexistent/objects >r.git/objects/info/alternates"},
		"worktree":             {prepare: "git -C r.git worktree add -q ../w b0", git: "r.git"},
		"shallow":              {prepare: `git clone -q --bare --no-single-branch --depth 3 "file://$PWD/r.git" s.git`, git: "s.git"},
		"shallow in place":     {prepare: "cd r.git && git rev-list -n 5 b0 | tail -1 >shallow"},
		"grafts":               {prepare: "cd r.git && mkdir -p info && echo $(git rev-parse b0) >info/grafts"},
		"replaced objects":     {prepare: "cd r.git && git replace $(git rev-parse b0) $(git rev-parse b1)"},
		"SHA-256":              {prepare: "rm -rf r.git && git init -q --bare --object-format=sha256 r.git && cd r.git && git update-ref refs/heads/b0 $(git commit-tree -m x $(git hash-object -t tree -w /dev/null))"},
		"worktree config":      {prepare: "git -C r.git config extensions.worktreeConfig true"},
		"symbolic refs":        {prepare: "cd r.git && git symbolic-ref refs/remotes/o/HEAD refs/heads/b1 && git symbolic-ref refs/heads/to refs/remotes/o/HEAD && git symbolic-ref refs/heads/nowhere refs/heads/none"},
		"detached":             {prepare: "cd r.git && git update-ref --no-deref HEAD $(git rev-parse b1)"},
		"unborn":               {prepare: "git -C r.git symbolic-ref HEAD refs/heads/none"},
		"missing blob":         {prepare: `cd r.git && git unpack-objects -q <objects/pack/*.pack; mv objects/pack ../packs; mkdir objects/pack; git unpack-objects -q <$(ls ../packs/*.pack) && o=$(git rev-list --objects b0 | grep -v '^[0-9a-f]*$' | head -1 | cut -c1-40) && rm -f objects/$(echo $o | cut -c1-2)/$(echo $o | cut -c3-)`},
		"damaged tree":         {prepare: `cd r.git && mv objects/pack ../packs && mkdir objects/pack && git unpack-objects -q <$(ls ../packs/*.pack) && o=$(git rev-parse b0^{tree}) && f=objects/$(echo $o | cut -c1-2)/$(echo $o | cut -c3-) && chmod +w $f && echo damage >$f`},
		"submodule repository": {prepare: "git init -q top && git clone -q r.git top/sub && cd top && git -c protocol.file.allow=always submodule --quiet add ../r.git mod && git commit -qm x", git: "top/.git"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			shell(t, dir, "git init -q --bare r.git && git -C r.git symbolic-ref HEAD refs/heads/b0")
			history(t, filepath.Join(dir, "r.git"), 7, 40)
			shell(t, dir, c.prepare)
			at := filepath.Join(dir, "r.git")
			if c.git != "" {
				at = filepath.Join(dir, c.git)
			}
			commits := strings.Fields(shell(t, at, "git rev-list --all --max-count=12 || true"))
			compare(t, at, slices.DeleteFunc(commits, func(w string) bool { return len(w) < 40 }), refNames(t, at))
		})
	}
}

// TestDifferentialLarge compares a history of 10,000 commits.
func TestDifferentialLarge(t *testing.T) {
	if racing {
		t.Skip("nothing in it happens at once")
	}
	dir := t.TempDir()
	shell(t, dir, "git init -q --bare r.git && git -C r.git symbolic-ref HEAD refs/heads/b0")
	at := filepath.Join(dir, "r.git")
	history(t, at, 11, 10_000)
	compare(t, at, everyNth(t, at, 12), refNames(t, at))
	shell(t, at, "git gc -q")
	compare(t, at, everyNth(t, at, 12), refNames(t, at))
}

// TestDifferentialHistories compares the histories of the repositories whose directories
// COVEN_HISTORIES lists, separated by colons.
func TestDifferentialHistories(t *testing.T) {
	for _, from := range filepath.SplitList(os.Getenv("COVEN_HISTORIES")) {
		dir := t.TempDir()
		shell(t, dir, "git clone -q --mirror '"+from+"' r.git")
		at := filepath.Join(dir, "r.git")
		compare(t, at, everyNth(t, at, 40), refNames(t, at))
		shell(t, at, "git repack -adfq --depth=250 || true") // fails for a partial clone
		compare(t, at, everyNth(t, at, 40), nil)
	}
}

// TestDifferentialSeeds compares histories of several shapes.
func TestDifferentialSeeds(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			shell(t, dir, "git init -q --bare r.git && git -C r.git symbolic-ref HEAD refs/heads/b0")
			at := filepath.Join(dir, "r.git")
			history(t, at, seed, 60)
			compare(t, at, everyNth(t, at, 15), refNames(t, at))
		})
	}
}

// TestRepackedBetween repacks after the Store has read the indexes: it finds the objects in their new place
// without running git.
func TestRepackedBetween(t *testing.T) {
	dir := t.TempDir()
	shell(t, dir, "git init -q --bare r.git && git -C r.git symbolic-ref HEAD refs/heads/b0")
	at := filepath.Join(dir, "r.git")
	history(t, at, 3, 50)
	commits, refs := everyNth(t, at, 10), refNames(t, at)
	want := answers(Repo{Dir: at}, commits, refs)
	store, path := OpenStore(at), os.Getenv("PATH")
	if _, err := (Repo{Dir: at, Store: store}).Commits(t.Context(), commits[0]); err != nil {
		t.Fatal(err)
	}
	for _, repack := range []string{"git repack -adfq", "git gc -q --prune=now", "git repack -adfq --window=3"} {
		shell(t, at, repack)
		got := answers(Repo{Dir: at, Store: store}, commits, refs)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("after %s, the answers differ", repack)
		}
		t.Setenv("PATH", "")
		if _, err := (Repo{Dir: at, Store: store}).Commits(t.Context(), commits...); err != nil {
			t.Errorf("after %s, git is needed: %v", repack, err)
		}
		t.Setenv("PATH", path)
	}
}

// TestInProcess checks that no git runs if the layout is plain.
func TestInProcess(t *testing.T) {
	dir := t.TempDir()
	shell(t, dir, "git init -q --bare r.git && git -C r.git symbolic-ref HEAD refs/heads/b0")
	at := filepath.Join(dir, "r.git")
	im := &importer{random: rand.New(rand.NewPCG(5, 1))}
	tip := im.commit("refs/heads/b0", 1)
	for i := range 50 {
		tip = im.commit("refs/heads/b0", i+2, tip)
	}
	cmd := exec.Command("git", "fast-import", "--quiet", "--force")
	cmd.Dir, cmd.Stdin = at, &im.input
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	commits := everyNth(t, at, 50)
	want := answers(Repo{Dir: at}, commits, []string{"refs/heads/b0", "refs/heads/none"})
	t.Setenv("PATH", "")
	got := answers(Repo{Dir: at, Store: OpenStore(at)}, commits, []string{"refs/heads/b0", "refs/heads/none"})
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("go-git: %s\ngit:    %s", got[i], want[i])
		}
	}
}

// TestStaleLooseRef checks that the Store does not return an old value from packed-refs if the newer one is
// unreadable.
func TestStaleLooseRef(t *testing.T) {
	dir := t.TempDir()
	shell(t, dir, "git init -q --bare r.git")
	at := filepath.Join(dir, "r.git")
	history(t, at, 3, 5)
	shell(t, at, "git pack-refs --all && : >refs/heads/b0")
	if oid, err := object.Open(at).Ref("refs/heads/b0"); err == nil {
		t.Errorf("got %s", oid)
	}
}

// TestPipesInPlace checks that the Store does not block on a named pipe in place of a file.
func TestPipesInPlace(t *testing.T) {
	for _, name := range []string{"config", "packed-refs", "refs/heads/b0", "HEAD", "objects/info/alternates"} {
		dir := t.TempDir()
		shell(t, dir, "git init -q --bare r.git")
		at := filepath.Join(dir, "r.git")
		history(t, at, 3, 5)
		file := filepath.Join(at, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		_ = os.Remove(file)
		shell(t, dir, "mkfifo "+file)
		s := object.Open(at)
		_, _ = s.Ref("refs/heads/b0")
		_, _ = s.Branch(at)
	}
}

// TestObjectsOfAnySize checks that only small objects are read into memory.
func TestObjectsOfAnySize(t *testing.T) {
	dir := t.TempDir()
	at := filepath.Join(dir, "r.git")
	shell(t, dir, "git init -q --bare r.git && head -c 20000000 /dev/zero >big")
	oid := shell(t, at, "git hash-object -w ../big")
	commit := shell(t, at, `git commit-tree -m x $(printf '100644 blob `+oid+`\tbig\n' | git mktree)`)
	r := Repo{Dir: at, Store: OpenStore(at)}
	sizes, err := r.Sizes(t.Context(), []string{oid})
	if err != nil || sizes[oid] != 20_000_000 {
		t.Errorf("%v, %v", sizes, err)
	}
	content, err := r.File(t.Context(), commit, "big")
	if err != nil || len(content) != 20_000_000 {
		t.Errorf("%d, %v", len(content), err)
	}
	_, err = objects(t.Context(), r, []string{oid}, (*object.Storage).Bodies)
	if !errors.Is(err, object.ErrUnsupported) {
		t.Errorf("got %v", err)
	}
}
