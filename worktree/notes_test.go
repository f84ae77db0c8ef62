package worktree

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/notes"
)

// commits adds n empty commits to main and returns them.
func commits(t *testing.T, r *repo.Repo, n int) (all []notes.Landed) {
	t.Helper()
	tree, parent := gitIn(t, r.Root, "rev-parse", "HEAD^{tree}"), "HEAD"
	for i := range n {
		parent = gitIn(t, r.Root, "commit-tree", "-m", fmt.Sprint("commit ", i), "-p", parent, tree)
		all = append(all, notes.Landed{Commit: parent, Tree: tree})
	}
	gitIn(t, r.Root, "update-ref", "refs/heads/kept", parent)
	return all
}

func storeNote(t *testing.T, r *repo.Repo, l notes.Landed, statement string) {
	t.Helper()
	if unsigned := value[error](t)(notes.Store(t.Context(), r, l, statement)); unsigned != nil {
		t.Fatal(unsigned)
	}
}

// git reads the notes, also those of a repository with many, and with SHA-256 IDs.
func TestNotes(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		t.Run(format, func(t *testing.T) {
			r := sample(t, "--object-format="+format)
			all := commits(t, r, 300)
			for i, c := range all {
				if i%4 == 0 && i < 250 {
					gitIn(t, r.Root, "notes", "--ref=coven", "add", "-m", "by git", c.Commit)
				} else if format == "sha1" || i < 20 {
					storeNote(t, r, c, fmt.Sprintf("{%d}\n", i))
				}
			}
			for _, i := range []int{1, 2, 17, 298, 299} {
				if format != "sha1" && i > 20 {
					continue
				}
				shown := gitIn(t, r.Root, "notes", "--ref=coven", "show", all[i].Commit) + "\n"
				text := string(value[[]byte](t)(notes.Read(t.Context(), r, all[i].Commit)))
				equal(t, "text", strings.TrimRight(text, "\n"), strings.TrimRight(shown, "\n"))
				note := value[notes.Note](t)(notes.Parse([]byte(text)))
				equal(t, "note", note, notes.Note{Landed: all[i], Statement: fmt.Sprintf("{%d}\n", i)})
			}
			gitIn(t, r.Root, "fsck", "--no-dangling")
			storeNote(t, r, all[1], "another") // replaces nothing
			if text := value[[]byte](t)(notes.Read(t.Context(), r, all[1].Commit)); !strings.Contains(string(text), "{1}") {
				t.Errorf("replaced: %s", text)
			}
			_, err := notes.Read(t.Context(), r, gitIn(t, r.Root, "rev-parse", "main"))
			wantIs(t, err, notes.ErrNone)
			if format == "sha1" {
				equal(t, "number", len(strings.Split(gitIn(t, r.Root, "notes", "--ref=coven", "list"), "\n")), 300)
			}
		})
	}
}

// Notes that are stored at once all survive.
func TestNotesAtOnce(t *testing.T) {
	r := sample(t)
	all := commits(t, r, 12)
	var wait sync.WaitGroup
	for _, c := range all {
		own := value[*repo.Repo](t)(repo.Open(t.Context(), r.Root)) // as in a process of its own
		wait.Go(func() {
			if _, err := notes.Store(t.Context(), own, c, "{}\n"); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	equal(t, "number", len(strings.Split(gitIn(t, r.Root, "notes", "--ref=coven", "list"), "\n")), len(all))
}

// A signing program that fails or hangs leaves the note unsigned.
func TestNoteCannotSign(t *testing.T) {
	r := sample(t)
	program := filepath.Join(t.TempDir(), "gpg")
	hook(t, program, "exit 2\n")
	gitIn(t, r.Root, "config", "gpg.program", program)
	gitIn(t, r.Root, "config", "user.signingKey", "ada")
	all := commits(t, r, 2)
	unsigned, err := notes.Store(t.Context(), r, all[1], "{}\n")
	must(t, err)
	must(t, unsigned) // the key may ask for a passphrase, and signs no commits
	gitIn(t, r.Root, "config", "commit.gpgSign", "true")
	c := all[0]
	unsigned, err = notes.Store(t.Context(), r, c, "{}\n")
	must(t, err)
	if unsigned == nil || !strings.Contains(unsigned.Error(), "failed to sign") {
		t.Errorf("unsigned: %v", unsigned)
	}
	text := value[[]byte](t)(notes.Read(t.Context(), r, c.Commit))
	equal(t, "signature", value[notes.Signature](t)(notes.Verify(t.Context(), r, text)).Result, notes.Unsigned)
}

// A signing program that waits for a passphrase is stopped.
func TestSigningIsLimited(t *testing.T) {
	r := sample(t)
	program := filepath.Join(t.TempDir(), "gpg")
	hook(t, program, "exec sleep 600\n")
	gitIn(t, r.Root, "config", "gpg.program", program)
	c := git.NewCommit{Tree: gitIn(t, r.Root, "rev-parse", "HEAD^{tree}"), Message: "x"}
	_, err := r.StoreSigned(t.Context(), c, nil, 100*time.Millisecond)
	wantIs(t, err, repo.ErrSignTime)
}

// The signature is that of git: with a key of the allowed signers it is good.
func TestNoteSignature(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"key", "other"} {
		if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, name)).CombinedOutput(); errors.Is(err, exec.ErrNotFound) {
			t.Skip("ssh-keygen is not here")
		} else if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	r := sample(t)
	write(t, filepath.Join(dir, "allowed"), "ada "+read(t, filepath.Join(dir, "key.pub")))
	gitIn(t, r.Root, "config", "gpg.format", "ssh")
	gitIn(t, r.Root, "config", "user.signingKey", filepath.Join(dir, "key.pub"))
	c := commits(t, r, 1)[0]
	storeNote(t, r, c, "{\"a\": 1}\n")
	text := value[[]byte](t)(notes.Read(t.Context(), r, c.Commit))
	result := func(text []byte) string {
		return value[notes.Signature](t)(notes.Verify(t.Context(), r, text)).Result
	}
	equal(t, "without signers", result(text), notes.Unknown)
	gitIn(t, r.Root, "config", "gpg.ssh.allowedSignersFile", filepath.Join(dir, "allowed"))
	equal(t, "with signers", result(text), notes.Good)
	equal(t, "changed", result([]byte(strings.Replace(string(text), "1}", "2}", 1))), notes.Bad)
	write(t, filepath.Join(dir, "allowed"), "eve "+read(t, filepath.Join(dir, "other.pub")))
	equal(t, "with another signer", result(text), notes.Unknown)
}

// Only the text of a commit that Store writes is a note.
func TestNoteForm(t *testing.T) {
	id := strings.Repeat("a", 40)
	good := "tree " + id + "\nparent " + id + "\nauthor A <a> 1 +0000\ncommitter A <a> 1 +0000\n"
	value[notes.Note](t)(notes.Parse([]byte(good + "\n{}\n")))
	value[notes.Note](t)(notes.Parse([]byte(good + "gpgsig -----\n x\n \n y\n\n{}\n")))
	for _, text := range []string{
		"", "{}", good, "\n\n{}", good + "encoding x\n\n{}", good + "gpgsig x\nmergetag y\n\n{}", strings.Replace(good, "parent", "parents", 1) + "\n{}",
		"tree " + id + "\nparent " + id + "\nparent " + id + good[94:] + "\n{}",
	} {
		if note, err := notes.Parse([]byte(text)); err == nil {
			t.Errorf("%q: %+v", text, note)
		}
	}
}

// gpg runs GnuPG with a new home directory that is in the environment, and ends its agent after the test.
func gpg(t *testing.T) func(args ...string) string {
	t.Helper()
	if _, err := exec.LookPath("gpg"); err != nil {
		t.Skip("gpg is not here")
	}
	home := value[string](t)(os.MkdirTemp("", "g")) // the paths of its sockets must be short
	t.Setenv("GNUPGHOME", home)
	t.Cleanup(func() {
		_ = exec.Command("gpgconf", "--homedir", home, "--kill", "all").Run()
		must(t, os.RemoveAll(home))
	})
	return func(args ...string) string {
		t.Helper()
		cmd := exec.Command("gpg", append([]string{"--batch", "--quiet", "--homedir", home, "--pinentry-mode", "loopback", "--passphrase", ""}, args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("gpg %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
}

// A signature by GnuPG is good if the key is trusted, is still valid, and signed exactly this text.
func TestNoteSignatureGPG(t *testing.T) {
	own := gpg(t)
	const then = "20200101T000000"
	own("--faked-system-time", then, "--quick-generate-key", "Ada <ada@example.org>", "ed25519", "sign", "never")
	own("--faked-system-time", then, "--quick-generate-key", "Old <old@example.org>", "ed25519", "sign", "1d")
	program := filepath.Join(t.TempDir(), "gpg")
	r := sample(t)
	gitIn(t, r.Root, "config", "commit.gpgSign", "true")
	gitIn(t, r.Root, "config", "user.signingKey", "ada@example.org")
	all := commits(t, r, 3)
	signed := func(c notes.Landed) []byte {
		storeNote(t, r, c, "{\"a\": 1}\n")
		return value[[]byte](t)(notes.Read(t.Context(), r, c.Commit))
	}
	check := func(what string, text []byte, result, detail string) {
		t.Helper()
		s := value[notes.Signature](t)(notes.Verify(t.Context(), r, text))
		if s.Result != result || !strings.HasPrefix(s.Detail, detail) || detail == "" && s.Signer != "Ada <ada@example.org>" {
			t.Errorf("%s: %+v", what, s)
		}
	}
	text := signed(all[0])
	check("own", text, notes.Good, "")
	check("changed", []byte(strings.Replace(string(text), "1}", "2}", 1)), notes.Bad, "the receipt is not the signed one: ")
	broken := strings.Replace(string(text), "\n =", "\n =A", 1)
	check("broken", []byte(broken), notes.Unknown, "git cannot verify it: ")
	hook(t, program, "exec gpg --faked-system-time "+then+` --default-sig-expire 1d "$@"`+"\n")
	gitIn(t, r.Root, "config", "gpg.program", program)
	expired := signed(all[1])
	hook(t, program, "exec gpg --faked-system-time "+then+` "$@"`+"\n")
	gitIn(t, r.Root, "config", "user.signingKey", "old@example.org")
	old := signed(all[2])
	gitIn(t, r.Root, "config", "gpg.program", "gpg")
	check("signature that has expired", expired, notes.Unknown, "it is good, but has expired: ")
	check("key that has expired", old, notes.Unknown, "it is good, but its key has expired: ")
	public := own("--armor", "--export", "ada@example.org")
	fingerprint := value[notes.Signature](t)(notes.Verify(t.Context(), r, text)).Key
	revocation := read(t, filepath.Join(os.Getenv("GNUPGHOME"), "openpgp-revocs.d", fingerprint+".rev"))
	write(t, program, strings.Replace(revocation, ":-----BEGIN", "-----BEGIN", 1))
	own("--import", program)
	check("revoked key", text, notes.Unknown, "it is good, but its key has been revoked: ")

	other := gpg(t)
	check("unknown key", text, notes.Unknown, "its key is not known: ")
	write(t, program, public)
	other("--import", program)
	check("key without trust", text, notes.Unknown, "it is good, but its key is not trusted")
	write(t, program, fingerprint+":6:\n")
	other("--import-ownertrust", program)
	check("trusted key", text, notes.Good, "")
}
