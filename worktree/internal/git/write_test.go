package git

import (
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coven-run/coven/worktree/internal/ref"
)

// emptyRepo creates a repository with one commit. It returns the repository, opened for reading in process,
// the commit, and its tree.
func emptyRepo(t *testing.T, more string) (r Repo, commit, tree string) {
	t.Helper()
	dir := t.TempDir()
	for name, value := range map[string]string{"HOME": dir, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.DevNull} {
		t.Setenv(name, value)
	}
	shell(t, dir, "git init -q repo && cd repo && git commit -q --allow-empty -m first && "+more)
	old := time.Now().Add(-time.Hour) // so that the file is read only once
	if err := os.Chtimes(filepath.Join(dir, "repo", ".git", "config"), old, old); err != nil {
		t.Fatal(err)
	}
	r = Repo{Dir: filepath.Join(dir, "repo", ".git"), WorkTree: filepath.Join(dir, "repo")}
	commit, tree = shell(t, r.WorkTree, "git rev-parse HEAD"), shell(t, r.WorkTree, "git rev-parse HEAD^{tree}")
	r.Store = OpenStore(r.Dir)
	return r, commit, tree
}

// TestWrittenAlike compares commits and blobs written in process with those of git.
func TestWrittenAlike(t *testing.T) {
	r, commit, tree := emptyRepo(t, "git config user.name Configured; git config author.email au@example.org")
	ctx, random := context.Background(), rand.New(rand.NewPCG(3, 1))
	words := []string{"", "Ada", "Bea", " Ada Ö ", "<Ada>", "a\nb", ";:\"'\\", "J.<>K", ".", "\t\x01x", "\xff"}
	pick := func() string { return words[random.IntN(len(words))] + words[random.IntN(len(words))] }
	written := 0
	for range 400 {
		r.Env = []string{"GIT_AUTHOR_DATE=@1700000000 +0230", "GIT_COMMITTER_DATE=@1700000001 -0700"}
		for _, name := range []string{"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"} {
			if random.IntN(3) > 0 {
				r.Env = append(r.Env, name+"="+pick())
			}
		}
		if random.IntN(10) == 0 {
			r.Env[0] = "GIT_AUTHOR_DATE=2024-02-03T04:05:06Z"
		}
		if random.IntN(10) == 0 {
			r.Env[1] = "GIT_COMMITTER_DATE=@1700000001" // git adds the time zone
		}
		c := NewCommit{Tree: tree, Message: pick() + "\n\n" + pick()}
		if c.Message = strings.ToValidUTF8(c.Message, "?"); random.IntN(3) > 0 {
			c.Parents = append(c.Parents, commit)
		}
		body, bodyErr := r.commitBody(ctx, c)
		got, err := r.StoreCommit(ctx, c)
		alone := r
		alone.Store = nil
		want, wantErr := alone.StoreCommit(ctx, c)
		if got != want || (err == nil) != (wantErr == nil) {
			t.Fatalf("%q %+v: %s %v, git says %s %v\n%s", r.Env, c, got, err, want, wantErr, body)
		}
		if bodyErr == nil {
			written++
		}
	}
	if written < 30 {
		t.Errorf("only %d of 400 commits were written in process", written)
	}
	for _, content := range []string{"", "x", strings.Repeat("long ", 1<<16)} {
		oid, err := r.Blob(ctx, []byte(content))
		if err != nil {
			t.Fatal(err)
		}
		if want := shell(t, r.WorkTree, "git cat-file -s "+oid); want != fmt.Sprint(len(content)) {
			t.Errorf("a blob of %d bytes has %s", len(content), want)
		}
	}
	shell(t, r.WorkTree, "git fsck --strict --no-dangling")
}

// TestWrittenInProcess checks that git is not run, except for cases that only git can decide.
func TestWrittenInProcess(t *testing.T) {
	r, commit, tree := emptyRepo(t, "git config user.name A; git config user.email a@example.org")
	ctx := context.Background()
	if _, err := r.Configured(ctx, "^user", false); err != nil { // git lists the configuration once
		t.Fatal(err)
	}
	path := os.Getenv("PATH")
	t.Setenv("PATH", "")
	oid, err := r.StoreCommit(ctx, NewCommit{Tree: tree, Parents: []string{commit}, Message: "m\n"})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(r.Dir, "objects", oid[:2], oid[2:])
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(file, old, old); err != nil {
		t.Fatal(err)
	}
	blob, err := r.Blob(ctx, []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []string{blob, blob} { // the second time, only the object's modification time changes
		if again, err := r.Blob(ctx, []byte("x")); err != nil || again != o {
			t.Fatal(again, err)
		}
	}
	for name, c := range map[string]NewCommit{
		"an unknown tree":   {Tree: blob, Message: "m\n"},
		"a missing tree":    {Tree: strings.Repeat("1", 40), Message: "m\n"},
		"a missing parent":  {Tree: tree, Parents: []string{strings.Repeat("1", 40)}, Message: "m\n"},
		"a parent twice":    {Tree: tree, Parents: []string{commit, commit}, Message: "m\n"},
		"a signed commit":   {Tree: tree, Message: "m\n", Options: []string{"-S"}},
		"a tree as parent":  {Tree: tree, Parents: []string{tree}, Message: "m\n"},
		"a commit for tree": {Tree: oid[:39] + "x", Message: "m\n"},
	} {
		if got, err := r.StoreCommit(ctx, c); err == nil {
			t.Errorf("%s is written in process: %s", name, got)
		}
	}
	t.Setenv("PATH", path)
	for _, special := range []string{"core.sharedRepository group", "core.fsyncMethod batch"} {
		shell(t, r.WorkTree, "git config "+special)
		if _, err := r.writeLoose(ctx, "blob", []byte(special)); err == nil {
			t.Errorf("with %s, an object is written in process", special)
		}
		shell(t, r.WorkTree, "git config --unset "+strings.Fields(special)[0])
	}
}

// TestTransactions compares a shared git process for many transactions with one process for each.
func TestTransactions(t *testing.T) {
	r, commit, tree := emptyRepo(t, "git config user.name A; git config user.email a@example.org")
	other, _, _ := emptyRepo(t, "git config user.name A; git config user.email a@example.org")
	other.Store = nil
	ctx, random := context.Background(), rand.New(rand.NewPCG(4, 1))
	oids := []string{commit, strings.Repeat("1", 40)}
	for _, repo := range []Repo{r, other} {
		repo.Env = []string{"GIT_AUTHOR_DATE=@1700000000 +0000", "GIT_COMMITTER_DATE=@1700000000 +0000"}
		oid, err := repo.StoreCommit(ctx, NewCommit{Tree: tree, Message: "m\n"})
		if err != nil {
			t.Fatal(err)
		}
		oids[1] = oid
	}
	shell(t, other.WorkTree, "git fetch -q "+r.WorkTree+" && git update-ref refs/heads/fetched FETCH_HEAD")
	r.Store.refs.mu.Lock() // nothing is running yet
	if r.Store.refs.running != nil {
		t.Fatal("a git runs before the first transaction")
	}
	r.Store.refs.mu.Unlock()
	names := []string{"refs/coven/a", "refs/coven/b", "refs/coven/a/under", "refs/coven/c..d", "refs/coven/"}
	pids := map[int]bool{}
	for i := range 200 {
		var edits []ref.Edit
		for range 1 + random.IntN(2) {
			name, oid, old := names[random.IntN(len(names))], oids[random.IntN(2)], oids[random.IntN(2)]
			edits = append(edits, []ref.Edit{ref.Create(name, oid), ref.Move(name, oid, old), ref.Delete(name, old), ref.Set(name, oid), ref.Drop(name), ref.Verify(name, oid)}[random.IntN(6)])
		}
		err, want := r.Transact(ctx, "m", edits...), other.Transact(ctx, "m", edits...)
		if (err == nil) != (want == nil) || ExitCode(err) != ExitCode(want) {
			t.Fatalf("%d: %v: %v, alone: %v", i, edits, err, want)
		}
		const list = "git for-each-ref refs/coven"
		if have, want := shell(t, r.WorkTree, list), shell(t, other.WorkTree, list); have != want {
			t.Fatalf("%d: %v: %s\nalone: %s", i, edits, have, want)
		}
		if p := r.Store.refs.running; p != nil {
			pids[p.cmd.Process.Pid] = true
			if i%20 == 0 { // the idle process is killed
				_ = p.cmd.Process.Signal(syscall.SIGKILL)
			}
		}
	}
	if len(pids) > 150 {
		t.Errorf("%d processes for 200 transactions", len(pids))
	}
	r.Store.refs.endIdle(r.Store.refs.used)
	if r.Store.refs.running != nil {
		t.Error("git still runs")
	}
	for pid := range pids {
		if err := syscall.Kill(pid, 0); err == nil {
			t.Errorf("process %d is left", pid)
		}
	}
	locks, err := exec.Command("find", r.Dir, "-name", "*.lock").Output()
	if err != nil || len(locks) > 0 {
		t.Errorf("locks are left: %s %v", locks, err)
	}
}

// Writing an existing object again updates its modification time: git gc waits before it removes objects
// that are not reachable yet.
func TestWrittenAgain(t *testing.T) {
	r, _, _ := emptyRepo(t, "git config user.name A; git config user.email a@example.org")
	oid, err := r.Blob(t.Context(), []byte("again"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(r.Dir, "objects", oid[:2], oid[2:])
	old := time.Now().Add(-1000 * time.Hour)
	if err := os.Chtimes(file, old, old); err != nil {
		t.Fatal(err)
	}
	if again, err := r.Blob(t.Context(), []byte("again")); err != nil || again != oid {
		t.Fatalf("%s, %v", again, err)
	}
	info, err := os.Stat(file)
	if err != nil || time.Since(info.ModTime()) > time.Hour {
		t.Errorf("it was written at %s: %v", info.ModTime(), err)
	}
}

// A transaction succeeds even if the git process for the previous one was killed.
func TestTransactionAfterKill(t *testing.T) {
	r, commit, _ := emptyRepo(t, "git config user.name A; git config user.email a@example.org")
	for i := range 5 {
		if err := r.Transact(t.Context(), "m", ref.Create(fmt.Sprint("refs/coven/", i), commit)); err != nil {
			t.Fatalf("%d: %v", i, err)
		}
		p := r.Store.refs.running
		if p == nil {
			t.Fatal("no git is kept")
		}
		if err := p.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	r.Store.Close()
	if n := len(strings.Fields(shell(t, r.WorkTree, "git for-each-ref --format='%(refname)' refs/coven"))); n != 5 {
		t.Errorf("%d refs", n)
	}
}

// An object is on disk before it gets its name, and gets none if that fails: after a power failure, every
// object that a ref reaches is complete.
func TestObjectIsOnDiskBeforeItsName(t *testing.T) {
	r, _, _ := emptyRepo(t, "git config user.name A; git config user.email a@example.org")
	named := func() int { return len(strings.Fields(shell(t, r.Dir, "find objects -type f ! -name 'tmp_obj_*'"))) }
	if r.Store.writeOut(nil) == nil { // not a file
		t.Error("a Store does not hand objects to the disk")
	}
	before, handed := named(), 0
	r.Store.writeOut = func(f *os.File) error {
		handed++
		if n := named(); n != before {
			t.Errorf("%d objects have names before the disk has this one, %d before", n, before)
		}
		in, err := os.Open(f.Name())
		if err != nil {
			return err
		}
		defer func() { _ = in.Close() }()
		unpacked, err := zlib.NewReader(in)
		if err != nil {
			return err
		}
		if text, err := io.ReadAll(unpacked); err != nil || string(text) != "blob 4\x00safe" {
			t.Errorf("the disk gets %q, %v", text, err)
		}
		return nil
	}
	if _, err := r.Blob(t.Context(), []byte("safe")); err != nil || handed != 1 || named() != before+1 {
		t.Errorf("%v; handed to the disk %d times, %d objects", err, handed, named()-before)
	}
	full := errors.New("no space left")
	r.Store.writeOut = func(*os.File) error { return full }
	if oid, err := r.writeLoose(t.Context(), "blob", []byte("lost")); !errors.Is(err, full) {
		t.Errorf("%s, %v", oid, err)
	}
	if files := shell(t, r.Dir, "find objects -type f"); len(strings.Fields(files)) != before+1 {
		t.Errorf("objects after a failure:\n%s", files)
	}
}

// The git process for transactions does not end because an older transaction has become idle.
func TestEndOfIdleGit(t *testing.T) {
	r, commit, _ := emptyRepo(t, "git config user.name A; git config user.email a@example.org")
	t.Cleanup(r.Store.Close)
	refs := &r.Store.refs
	for i := range 2 {
		if err := r.Transact(t.Context(), "m", ref.Create(fmt.Sprint("refs/coven/", i), commit)); err != nil {
			t.Fatal(err)
		}
	}
	running := func() bool {
		refs.mu.Lock()
		defer refs.mu.Unlock()
		return refs.running != nil
	}
	if refs.endIdle(1); !running() {
		t.Error("the first transaction ends the git that has served a second one")
	}
	if refs.endIdle(2); running() {
		t.Error("the last transaction does not end it")
	}
}

// Objects of a separate object directory are read and written only there.
func TestOwnObjects(t *testing.T) {
	r, ours, _ := emptyRepo(t, "git commit -q --allow-empty -m ours")
	other, theirs, _ := emptyRepo(t, "git commit -q --allow-empty -m theirs")
	if there, err := r.Has(t.Context(), ours, "commit"); err != nil || !there { // the Store has read it
		t.Fatal(there, err)
	}
	r.ObjectDir = filepath.Join(other.Dir, "objects")
	for oid, want := range map[string]bool{theirs: true, ours: false} {
		if there, err := r.Has(t.Context(), oid, "commit"); err != nil || there != want {
			t.Errorf("has %s: %t, %v", oid, there, err)
		}
	}
	oid, err := r.Blob(t.Context(), []byte("new"))
	if err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{other.WorkTree: "there", r.WorkTree: "missing"} {
		if got := shell(t, dir, "git cat-file -e "+oid+" 2>/dev/null && echo there || echo missing"); got != want {
			t.Errorf("in %s the new object is %s", dir, got)
		}
	}
}

// git does not list files forever, whatever the ignore rules are.
func TestListTimeout(t *testing.T) {
	r, _, _ := emptyRepo(t, "true")
	top := t.TempDir()
	deep := top
	for range 300 {
		deep += "/a"
	}
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{".gitignore": strings.Repeat("**/a/", 8) + "x\n", "file": ""} {
		if err := os.WriteFile(filepath.Join(top, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(deep, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	r.WorkTree, r.ListTimeout = top, 200*time.Millisecond
	_, err := r.Fields(t.Context(), "ls-files", "-z", "-o", "--exclude-standard")
	if late := (*ListTimeoutError)(nil); !errors.As(err, &late) || late.Dir != top || !strings.Contains(late.NextCommand(), top) {
		t.Fatalf("%v", err)
	}
}
