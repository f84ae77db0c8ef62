package worktree

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/live"
	"github.com/coven-run/coven/worktree/remote"
	"github.com/coven-run/coven/worktree/snapshot"
)

// machines returns two clones of one remote, whose pre-receive hook writes the updates of each push to the file received.
func machines(t *testing.T, format string) (one, two *repo.Repo, dir, received string) {
	t.Helper()
	one = sample(t, "--object-format="+format)
	dir = bareRemote(t, one.Root, "origin", "--object-format="+format)
	gitIn(t, one.Root, "config", "remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*")
	gitIn(t, one.Root, "push", "-q", "origin", "HEAD:main")
	gitIn(t, dir, "symbolic-ref", "HEAD", "refs/heads/main")
	received = filepath.Join(t.TempDir(), "received")
	write(t, filepath.Join(dir, "hooks", "pre-receive"), "#!/bin/sh\ncat >> '"+received+"'\n")
	must(t, os.Chmod(filepath.Join(dir, "hooks", "pre-receive"), 0o755))
	at := filepath.Join(t.TempDir(), "two")
	gitIn(t, t.TempDir(), "clone", "-q", dir, at)
	return one, value[*repo.Repo](t)(repo.Open(t.Context(), at)), dir, received
}

func sessionOf(events string) live.State {
	return live.State{Session: "s", Files: map[string][]byte{"events.jsonl": []byte(events)}}
}

// A session continues on another machine with its record, its snapshot and its branch. The first machine is excluded from then on.
func TestLive(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		one, two, dir, _ := machines(t, format)
		w := add(t, one, "T")
		write(t, filepath.Join(w.Path, "new.txt"), "new")
		taken := value[snapshot.Snapshot](t)(snapshot.Take(t.Context(), w, "s", "before"))
		tip := gitIn(t, one.Root, "rev-parse", w.Branch)
		s := sessionOf("1\n")
		s.Snapshot, s.Branch = taken.Commit, live.Branch{Tip: tip, Merged: []string{tip}}
		first := value[string](t)(live.Push(t.Context(), one, "origin", "T", s))
		equal(t, "known", value[string](t)(live.Known(t.Context(), one, "T")), first)

		seen := value[string](t)(live.Tip(t.Context(), two, "origin", "T"))
		equal(t, "tip", seen, first)
		found := value[live.State](t)(live.Fetch(t.Context(), two, "origin", "T", seen))
		equal(t, "session", found.Session+found.Snapshot+found.Branch.Tip+strings.Join(found.Branch.Merged, "")+string(found.Files["events.jsonl"]), "s"+taken.Commit+tip+tip+"1\n")
		must(t, live.Put(t.Context(), two, "T", found, live.Worktree{Slug: "t", Base: tip, Made: 1}))
		equal(t, "branch", value[live.Branch](t)(live.BranchOf(t.Context(), two, "T")).Tip, tip)
		equal(t, "content", gitIn(t, two.Root, "show", found.Snapshot+":new.txt"), "new")

		over := sessionOf("1\n2\n")
		over.Tip = seen
		second := value[string](t)(live.Push(t.Context(), two, "origin", "T", over))
		s.Tip = first
		moved := (*remote.MovedError)(nil)
		if _, err := live.Push(t.Context(), one, "origin", "T", s); !errors.As(err, &moved) || moved.Tip != second {
			t.Errorf("%s: the first machine pushes: %v", format, err)
		}
		old := targetOf(one, t).Tip
		late := gitIn(t, one.Root, "commit-tree", "-p", old, "-m", "late", old+"^{tree}")
		if err := endOf(t, one, "T", "m").Land(t.Context(), one, "T", old, late, s); !errors.As(err, &moved) || moved.Ref != live.Ref("T") {
			t.Errorf("%s: the first machine lands: %v", format, err)
		}
		equal(t, "main", gitIn(t, dir, "rev-parse", "main"), old)
		must(t, live.Drop(t.Context(), two, "origin", "T", second))
		equal(t, "refs", gitIn(t, dir, "for-each-ref", "--format=%(refname)"), "refs/heads/main")
		equal(t, "known", value[string](t)(live.Known(t.Context(), two, "T")), "")
	}
}

// endOf looks at the end of a task's session, whose archive is the one of a machine.
func endOf(t *testing.T, r *repo.Repo, task, machine string) live.End {
	return value[live.End](t)(live.LookAtEnd(t.Context(), r, "origin", task, archiveOf(machine), "main"))
}

// archiveOf returns the archive of a machine in April.
func archiveOf(machine string) string {
	return live.ArchiveRef(machine, time.Date(2031, 4, 30, 23, 0, 0, 0, time.UTC))
}

// The push of a landing really contains the fence. A lease on a ref that the push does not move is only compared by the client: that is why the
// landing deletes the ref.
func TestLandingPushContainsFence(t *testing.T) {
	one, _, dir, received := machines(t, "sha1")
	s := sessionOf("1\n")
	tip := value[string](t)(live.Push(t.Context(), one, "origin", "T", s))
	old := targetOf(one, t).Tip
	next := gitIn(t, one.Root, "commit-tree", "-p", old, "-m", "next", old+"^{tree}")

	must(t, os.Remove(received))
	ref := live.Ref("T")
	gitIn(t, one.Root, "push", "-q", "--atomic", "--force-with-lease="+ref+":"+tip, "origin", next+":refs/heads/main", tip+":"+ref)
	equal(t, "a lease that does not move", read(t, received), old+" "+next+" refs/heads/main\n")

	must(t, os.Remove(received))
	last := gitIn(t, one.Root, "commit-tree", "-p", next, "-m", "last", old+"^{tree}")
	s.Tip = tip
	end := endOf(t, one, "T", "m")
	must(t, end.Land(t.Context(), one, "T", next, last, s))
	archive := gitIn(t, dir, "rev-parse", archiveOf("m"))
	zero := strings.Repeat("0", len(tip))
	equal(t, "the landing", sorted(read(t, received)), sorted(next+" "+last+" refs/heads/main\n"+tip+" "+zero+" "+ref+"\n"+zero+" "+archive+" "+archiveOf("m")+"\n"))
	equal(t, "refs", gitIn(t, dir, "for-each-ref", "--format=%(refname) %(objectname)"), archiveOf("m")+" "+archive+"\nrefs/heads/main "+last)

	must(t, os.Remove(received))
	if err := endOf(t, one, "T", "m").Land(t.Context(), one, "T", last, next, s); !errors.As(err, new(*remote.MovedError)) {
		t.Errorf("the landing again: %v", err)
	}
	if err := end.Land(t.Context(), one, "T", last, next, s); !errors.As(err, new(*remote.PushError)) {
		t.Errorf("the landing again, by a machine that has not looked since: %v", err)
	}
	equal(t, "the archive", gitIn(t, dir, "rev-parse", archiveOf("m")), archive)
}

// A machine that knows none of the remote's branches as they are now pushes only the work of the session, not the history.
func TestPushIsSmall(t *testing.T) {
	one, two, dir, _ := machines(t, "sha1")
	gitIn(t, dir, "config", "receive.unpackLimit", "1") // a pack for each push
	for range 50 {
		gitIn(t, one.Root, "commit", "-q", "--allow-empty", "-m", "earlier")
	}
	gitIn(t, one.Root, "push", "-q", "origin", "HEAD:main")
	gitIn(t, two.Root, "fetch", "-q")
	s := sessionOf("1\n")
	s.Base = gitIn(t, one.Root, "rev-parse", "HEAD")
	gitIn(t, two.Root, "reset", "-q", "--hard", "origin/main")
	gitIn(t, two.Root, "commit", "-q", "--allow-empty", "-m", "of another")
	gitIn(t, two.Root, "push", "-q", "origin", "HEAD:main")
	count := func() int { return packed(t, gitIn(t, dir, "count-objects", "-v")) }
	before := count()
	tip := value[string](t)(live.Push(t.Context(), one, "origin", "T", s))
	equal(t, "objects of the first push: a commit, a tree and a file", count()-before, 3)
	gitIn(t, one.Root, "fetch", "-q")
	gitIn(t, one.Root, "reset", "-q", "--hard", "origin/main")
	gitIn(t, one.Root, "commit", "-q", "--allow-empty", "-m", "later")
	gitIn(t, one.Root, "push", "-q", "origin", "HEAD:main")

	there := value[live.State](t)(live.Fetch(t.Context(), two, "origin", "T", tip))
	there.Branch.Tip = gitIn(t, two.Root, "commit-tree", "-p", s.Base, "-m", "work", s.Base+"^{tree}")
	there.Files["events.jsonl"] = []byte("1\n2\n")
	before = count()
	_ = value[string](t)(live.Push(t.Context(), two, "origin", "T", there))
	equal(t, "objects: two commits, a tree and a file", count()-before, 4)
}

// A remote whose answer to a push is lost has moved its refs or not: MoveRefs says which.
func TestLostAnswer(t *testing.T) {
	one, _, dir, _ := machines(t, "sha1")
	write(t, filepath.Join(dir, "hooks", "post-receive"), "#!/bin/sh\nkill -9 $PPID\n") // receive-pack dies after it has moved the refs
	must(t, os.Chmod(filepath.Join(dir, "hooks", "post-receive"), 0o755))
	tip := value[string](t)(live.Push(t.Context(), one, "origin", "T", sessionOf("1\n")))
	equal(t, "tip", gitIn(t, dir, "rev-parse", live.Ref("T")), tip)
	write(t, filepath.Join(dir, "hooks", "pre-receive"), "#!/bin/sh\necho 'protected branch' >&2; exit 1\n")
	next := sessionOf("1\n2\n")
	next.Tip = tip
	denied := (*remote.PushError)(nil)
	if _, err := live.Push(t.Context(), one, "origin", "T", next); !errors.As(err, &denied) || !denied.Denied || !strings.Contains(err.Error(), "protected branch") {
		t.Errorf("a refused push: %v", err)
	}
	equal(t, "known", value[string](t)(live.Known(t.Context(), one, "T")), tip)
}

// Sessions that end are in the archive of their machine, with their snapshots, and other machines do not fetch them.
func TestArchive(t *testing.T) {
	one, two, dir, _ := machines(t, "sha1")
	ref := archiveOf("m 1")
	equal(t, "ref", strings.HasPrefix(ref, "refs/coven/archive/2031-04/m-1"), true)
	for _, r := range []*repo.Repo{one, two, one} {
		s := sessionOf("1\n")
		s.Session = filepath.Base(r.Root)
		s.Tip = value[string](t)(live.Push(t.Context(), r, "origin", s.Session, live.State{Session: s.Session, Files: s.Files}))
		end := endOf(t, r, s.Session, "m 1")
		must(t, end.CheckBranch(gitIn(t, dir, "rev-parse", "main")))
		equal(t, "moved", errors.As(end.CheckBranch(s.Tip), new(*remote.MovedError)), true)
		other := sessionOf("2\n")
		other.Session = "other"
		other.Tip = value[string](t)(live.Push(t.Context(), r, "origin", "other", other))
		must(t, endOf(t, r, "other", "m 1").Close(t.Context(), r, "other", other))
		must(t, live.Know(t.Context(), r, "other", ""))
		must(t, end.Close(t.Context(), r, s.Session, s)) // although the archive has moved since
		equal(t, "after a crash", errors.As(endOf(t, r, s.Session, "m 1").Close(t.Context(), r, s.Session, s), new(*remote.MovedError)), true)
	}
	names := strings.Fields(gitIn(t, dir, "ls-tree", "-r", "--name-only", ref))
	equal(t, "files", sorted(strings.Join(names, "\n")), sorted(filepath.Base(one.Root)+"/events.jsonl\n"+filepath.Base(two.Root)+"/events.jsonl\nother/events.jsonl"))
	equal(t, "refs", gitIn(t, dir, "for-each-ref", "--format=%(refname)", "refs/coven"), ref)
}

// Another machine finds a session in the archives of the months, whose refs it keeps until it looks at other months.
func TestArchived(t *testing.T) {
	one, two, dir, _ := machines(t, "sha256")
	april := time.Date(2031, 4, 30, 23, 0, 0, 0, time.UTC)
	ended := func(session, machine, events string) {
		s := sessionOf(events)
		s.Session = session
		s.Tip = value[string](t)(live.Push(t.Context(), one, "origin", "T", s))
		must(t, endOf(t, one, "T", machine).Close(t.Context(), one, "T", s))
		must(t, live.Know(t.Context(), one, "T", ""))
	}
	found := func(session string, from, to time.Time) (all string) {
		up, archives, err := live.FetchEnds(t.Context(), two, "origin", "refs/remotes/origin/main", from, to)
		must(t, err)
		equal(t, "target", gitIn(t, two.Root, "rev-parse", "origin/main"), up.Tip)
		for s, err := range archives.States(t.Context(), two, session) {
			must(t, err)
			all += s.Session + ":" + string(s.Files["events.jsonl"])
			equal(t, "record", gitIn(t, two.Root, "show", s.Tip+":events.jsonl")+"\n", string(s.Files["events.jsonl"]))
			equal(t, "keeps", live.Keeps(t.Context(), two, s.Tip, live.State{Branch: live.Branch{Tip: up.Tip}}), false)
			equal(t, "keeps itself", live.Keeps(t.Context(), two, s.Tip, live.State{Snapshot: s.Tip}), true)
		}
		return all
	}
	refs := func() string { return gitIn(t, two.Root, "for-each-ref", "--format=%(refname)", "refs/coven") }
	equal(t, "no archives", found("a", april, april), "")
	ended("a", "m1", "1\n")
	ended("b", "m1", "2\n")
	ended("a", "m2", "3\n")
	equal(t, "both", found("a", april, april), "a:1\na:3\n")
	equal(t, "another", found("b", april, april.AddDate(0, 0, 1)), "b:2\n")
	equal(t, "none", found("c", april, april), "")
	kept := refs()
	equal(t, "refs", len(strings.Fields(kept)), 2)
	equal(t, "prefix", strings.HasPrefix(kept, "refs/coven/fetched/origin/2031-04/m1"), true)
	ended("a", "m1", "1\n4\n")
	equal(t, "later", found("a", april.AddDate(0, -1, 0), april), "a:1\n4\na:3\n")
	equal(t, "another month", found("a", april.AddDate(0, 0, 1), april.AddDate(0, 1, 0)), "")
	equal(t, "refs", refs(), "")
	gitIn(t, dir, "update-ref", live.ArchiveRef("m2", april), gitIn(t, dir, "commit-tree", "-m", "forged", gitIn(t, dir, "write-tree")))
	equal(t, "forged", found("a", april, april), "a:1\n4\n")
}

// Many archives of a month are joined. A machine that has not looked since still ends its session, in a new archive, and sessions in joined archives are found.
func TestJoin(t *testing.T) {
	one, two, dir, _ := machines(t, "sha1")
	april := time.Date(2031, 4, 30, 23, 0, 0, 0, time.UTC)
	pushed := func(session string) live.State {
		s := sessionOf(session + "\n")
		s.Session = session
		s.Tip = value[string](t)(live.Push(t.Context(), one, "origin", session, s))
		return s
	}
	ended := func(session, machine string) {
		s := pushed(session)
		must(t, endOf(t, one, session, machine).Close(t.Context(), one, session, s))
	}
	fetched := func() live.Archives {
		_, archives, err := live.FetchEnds(t.Context(), two, "origin", "refs/remotes/origin/main", april, april.AddDate(0, 0, 1))
		must(t, err)
		return archives
	}
	found := func(session string) (all string) {
		for s, err := range fetched().States(t.Context(), two, session) {
			must(t, err)
			equal(t, "keeps itself", live.Keeps(t.Context(), two, s.Tip, live.State{Snapshot: s.Tip}), true)
			all += string(s.Files["events.jsonl"])
		}
		return all
	}
	refs := func() string { return gitIn(t, dir, "for-each-ref", "--format=%(refname)", "refs/coven") }

	for i := range 16 {
		ended(fmt.Sprint("s", i), fmt.Sprint("m", i))
	}
	gitIn(t, dir, "update-ref", live.ArchiveRef("m1", april.AddDate(0, 0, 1)), archiveOf("m1"))
	before := refs()
	must(t, live.Join(t.Context(), two, "origin", fetched()))
	equal(t, "few", refs(), before)

	late := pushed("late")
	end := endOf(t, one, "late", "m1")
	ended("s16", "m16")
	stale := fetched()
	must(t, live.Join(t.Context(), two, "origin", stale))
	joined := "refs/coven/archive/2031-04/+joined"
	may := live.ArchiveRef("m1", april.AddDate(0, 0, 1))
	equal(t, "joined", refs(), joined+"\n"+may+"\nrefs/coven/live/late")
	must(t, end.Close(t.Context(), one, "late", late))
	equal(t, "with the archive of a session that ended meanwhile", refs(), joined+"\n"+archiveOf("m1")+"\n"+may)
	if err := live.Join(t.Context(), two, "origin", stale); !errors.As(err, new(*remote.MovedError)) {
		t.Errorf("joined by another clone: %v", err)
	}
	equal(t, "joined earlier", found("s3"), "s3\n")
	equal(t, "joined, and in an archive of another month", found("s1"), "s1\ns1\n")
	equal(t, "not joined", found("late"), "late\n")

	for i := range 16 {
		ended(fmt.Sprint("t", i), fmt.Sprint("n", i))
	}
	must(t, live.Join(t.Context(), two, "origin", fetched()))
	equal(t, "joined again", refs(), joined+"\n"+may)
	equal(t, "its parents", len(strings.Fields(gitIn(t, dir, "rev-parse", joined+"^@"))), 17+1+16)
	for _, session := range []string{"s3", "late", "t3"} {
		equal(t, "joined twice", found(session), session+"\n")
	}
	equal(t, "fetched", len(strings.Fields(gitIn(t, two.Root, "for-each-ref", "--format=%(refname)", "refs/coven/fetched"))), 2)
}

// LandedAs finds the commit of a task by its trailer, not by a text that only looks like it.
func TestLandedAs(t *testing.T) {
	r := sample(t)
	base := targetOf(r, t).Tip
	commit := func(message string) string {
		gitIn(t, r.Root, "commit", "-q", "--allow-empty", "-m", message)
		return gitIn(t, r.Root, "rev-parse", "HEAD")
	}
	commit("Quote\n\nCoven-Task: T\n\nis a trailer of coven.")
	commit("Another\n\nCoven-Task: T2\n")
	find := func() string { return value[string](t)(live.LandedAs(t.Context(), r, "T", base, targetOf(r, t).Tip)) }
	equal(t, "before", find(), "")
	landed := commit("It\n\nSigned-off-by: p <p@x>\nCoven-Task: T\nCoven-Session: s")
	commit("After")
	equal(t, "after", find(), landed)
}

// Secrets also finds a secret that a later snapshot no longer has, and none that was there before.
func TestLiveSecrets(t *testing.T) {
	r := sample(t)
	write(t, filepath.Join(r.Root, "old.pem"), "-----BEGIN PRIVATE KEY-----\n")
	gitIn(t, r.Root, "add", "-A")
	gitIn(t, r.Root, "commit", "-qm", "known")
	base := targetOf(r, t).Tip
	w := add(t, r, "T")
	take := func() string { return value[snapshot.Snapshot](t)(snapshot.Take(t.Context(), w, "s", "n")).Commit }
	first := take()
	write(t, filepath.Join(w.Path, "a.txt"), "-----BEGIN PRIVATE KEY-----\n")
	second := take()
	must(t, os.Remove(filepath.Join(w.Path, "a.txt")))
	third := take()
	find := func(known, tip string, allow ...string) string {
		return strings.Join(value[[]string](t)(live.Secrets(t.Context(), r, base, known, tip, allow)), ", ")
	}
	equal(t, "first", find("", first), "")
	equal(t, "third", find("", third), "a.txt (a private key)")
	equal(t, "allowed", find("", third, "*.txt"), "")
	equal(t, "since the second", find(second, third), "")
	equal(t, "the branch", find("", gitIn(t, r.Root, "rev-parse", w.Branch)), "")
}

func TestHasFilters(t *testing.T) {
	r := sample(t)
	has := func() bool { return value[bool](t)(live.HasFilters(t.Context(), r, targetOf(r, t).Tip)) }
	equal(t, "none", has(), false)
	write(t, filepath.Join(r.GitDir, "info", "attributes"), "*.secret filter=crypt\n")
	equal(t, "of the repository", has(), true)
	must(t, os.Remove(filepath.Join(r.GitDir, "info", "attributes")))
	write(t, filepath.Join(r.Root, "dir", ".gitattributes"), "*.bin filter=lfs diff=lfs\n")
	gitIn(t, r.Root, "add", "-A")
	gitIn(t, r.Root, "commit", "-qm", "filter")
	equal(t, "of a commit", has(), true)
}

// Files with the same content are all read. A tip that coven would not have made is damaged, and does not hide others.
func TestLiveRead(t *testing.T) {
	one, two, _, _ := machines(t, "sha1")
	s := sessionOf("")
	s.Files["messages.jsonl"] = nil
	tip := value[string](t)(live.Push(t.Context(), one, "origin", "T", s))
	found := value[live.State](t)(live.Fetch(t.Context(), two, "origin", "T", tip))
	equal(t, "files", len(found.Files), 2)

	forge := func(name, tree, message string) {
		t.Helper()
		oid := gitIn(t, one.Root, "commit-tree", "-m", message, tree)
		gitIn(t, one.Root, "push", "-q", "origin", oid+":"+live.Ref(name))
	}
	write(t, filepath.Join(one.Root, "dir", "file"), "x")
	gitIn(t, one.Root, "add", "-A")
	forge("directory", gitIn(t, one.Root, "write-tree"), "Coven-Session: s")
	must(t, os.RemoveAll(filepath.Join(one.Root, "dir")))
	must(t, os.Symlink("../plan.yaml", filepath.Join(one.Root, "plan.yaml")))
	gitIn(t, one.Root, "add", "-A")
	forge("link", gitIn(t, one.Root, "write-tree"), "Coven-Session: s")
	forge("merged", tip+"^{tree}", "Merged: --all")
	forge("snapshot", tip+"^{tree}", "Snapshot: "+tip)
	tips := value[map[string]string](t)(live.Tips(t.Context(), two, "origin"))
	states, damaged := live.FetchAll(t.Context(), two, "origin", tips)
	equal(t, "states", len(states), 1)
	for _, name := range []string{"directory", "link", "merged", "snapshot"} {
		if err := damaged[live.Ref(name)]; !errors.Is(err, live.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
