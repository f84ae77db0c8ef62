// Package notes stores the receipts of landings as git notes, and verifies their signatures.
//
// The note of a landed commit is the text of another commit object, as `git cat-file commit` prints it. That commit is on
// no branch: its tree and its parent are the landed tree and the landed commit, and its message is the statement about
// them. So git signs and verifies a statement as it does with commits.
package notes

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/object"
	"github.com/coven-run/coven/worktree/internal/ref"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// Ref is the ref of the notes. git notes --ref=coven shows them.
const Ref = "refs/notes/coven"

// signTimeout limits the run time of the signing program.
const signTimeout = 20 * time.Second

// maxNote limits the size of a note in bytes.
const maxNote = 4 << 20

// storeTries limits the attempts to store a note while others store theirs.
const storeTries = 20

// fanOut is the number of notes in a directory from which on git's layout with subdirectories is used.
const fanOut = 256

// ErrNone means that a commit has no note.
var ErrNone = exit.Sentinel(exit.Failed, "git fetch origin "+Ref+":"+Ref, "no receipt")

// ErrMalformed means that the note of a commit cannot be a receipt.
var ErrMalformed = errors.New("the note cannot be a receipt")

// A Landed is a commit for which there may be a note.
type Landed struct{ Commit, Tree string }

// Resolve returns the commit that a revision names.
func Resolve(ctx context.Context, r *repo.Repo, revision string) (Landed, error) {
	c, err := r.Git().Commit(ctx, revision)
	return Landed{c.Oid, c.Tree}, err
}

// IsAncestor reports whether a commit is reachable from another.
func IsAncestor(ctx context.Context, r *repo.Repo, ancestor, of string) (bool, error) {
	return r.Git().IsAncestor(ctx, ancestor, of)
}

// Store stores the note of a landed commit. It replaces no note. The note is signed if the user signs commits or has a
// SSH key to sign with; unsigned is the reason why it could not be signed.
func Store(ctx context.Context, r *repo.Repo, l Landed, statement string) (unsigned, err error) {
	text, unsigned, err := write(ctx, r, l, statement)
	if err != nil {
		return nil, fmt.Errorf("write the receipt of %s: %w", l.Commit, err)
	}
	blob, err := r.Git().Blob(ctx, text)
	if err != nil {
		return nil, fmt.Errorf("write the receipt of %s: %w", l.Commit, err)
	}
	failpoint.Point("note.before")
	for range storeTries {
		if err = add(ctx, r, l.Commit, blob); err == nil || !errors.Is(err, errMoved) || ctx.Err() != nil {
			break
		}
	}
	failpoint.Point("note.after")
	if err != nil {
		return nil, fmt.Errorf("add the receipt of %s to %s: %w", l.Commit, Ref, err)
	}
	return unsigned, nil
}

// write stores the commit object of a note and returns its text.
func write(ctx context.Context, r *repo.Repo, l Landed, statement string) (text []byte, unsigned, err error) {
	c := git.NewCommit{Tree: l.Tree, Parents: []string{l.Commit}, Message: statement}
	signs, err := signs(ctx, r.Git())
	if err != nil {
		return nil, nil, err
	}
	oid := ""
	if signs {
		oid, unsigned = r.StoreSigned(ctx, c, nil, signTimeout)
	}
	if !signs || unsigned != nil {
		if oid, err = r.StoreCommit(ctx, c, nil); err != nil {
			return nil, nil, err
		}
	}
	text, err = body(ctx, r.Git(), oid)
	return text, unsigned, err
}

// signs reports whether the user's settings sign commits, or name an SSH key. A key of another format may ask for a passphrase,
// so it signs only if it signs commits anyway.
func signs(ctx context.Context, g git.Repo) (bool, error) {
	signs, err := g.Enabled(ctx, "commit.gpgSign")
	if err != nil || signs {
		return signs, err
	}
	last := map[string]string{}
	settings, err := g.Configured(ctx, `^(user\.signingkey|gpg\.format)$`, false)
	for _, s := range settings {
		last[strings.ToLower(s.Key)] = s.Value
	}
	return last["user.signingkey"] != "" && last["gpg.format"] == "ssh", err
}

// body returns the content of an object.
func body(ctx context.Context, g git.Repo, oid string) (content []byte, err error) {
	err = g.Objects(ctx, []string{oid}, func(o object.Object, from io.Reader) (err error) {
		if o.Size > maxNote {
			return fmt.Errorf("%w: it has %d bytes, more than %d", ErrMalformed, o.Size, maxNote)
		}
		content, err = io.ReadAll(io.LimitReader(from, maxNote))
		return err
	})
	return content, err
}

var errMoved = errors.New("another process changed the notes")

// add adds a note, unless the commit has one. The error is errMoved if another process has changed the notes.
func add(ctx context.Context, r *repo.Repo, commit, blob string) error {
	g := r.Git()
	old, tree, err := present(ctx, g)
	if err != nil {
		return err
	}
	tree, err = insert(ctx, g, tree, commit, blob)
	if err != nil || tree == "" {
		return err
	}
	c := git.NewCommit{Tree: tree, Message: "coven: receipt of " + commit}
	edit := ref.Create
	if old != "" {
		c.Parents = []string{old}
		edit = func(name, to string) ref.Edit { return ref.Move(name, to, old) }
	}
	next, err := r.StoreCommit(ctx, c, nil)
	if err != nil {
		return err
	}
	if err := r.Transact(ctx, g, "coven: receipt", edit(Ref, next)); err != nil {
		if now, _, readErr := present(ctx, g); readErr == nil && now != old {
			return errMoved
		}
		return err
	}
	return nil
}

// present returns the commit and the tree of the notes. They are empty if there are none.
func present(ctx context.Context, g git.Repo) (commit, tree string, err error) {
	commit, err = g.Ref(ctx, Ref)
	if errors.Is(err, ref.ErrNoRef) {
		return "", "", nil
	}
	if err == nil {
		tree, err = g.Tree(ctx, commit)
	}
	return commit, tree, err
}

// insert returns tree with a note at path, the rest of the commit's ID. It is empty if there is a note already.
func insert(ctx context.Context, g git.Repo, tree, path, blob string) (string, error) {
	entries, dir, note, err := level(ctx, g, tree, path)
	if err != nil || note.Oid != "" {
		return "", err
	}
	add := object.Entry{Mode: "100644", Oid: blob, Path: path}
	if dir >= 0 || len(entries) >= fanOut {
		add = object.Entry{Mode: object.ModeTree, Path: path[:2]}
		below := ""
		if dir >= 0 {
			below, entries = entries[dir].Oid, slices.Delete(slices.Clone(entries), dir, dir+1)
		}
		if add.Oid, err = insert(ctx, g, below, path[2:], blob); err != nil || add.Oid == "" {
			return "", err
		}
	}
	return g.MakeTree(ctx, append(entries, add))
}

// level returns the entries of one directory of notes, the index of the subdirectory for path or -1, and the entry at path. Its ID is empty
// if the directory does not have it.
func level(ctx context.Context, g git.Repo, tree, path string) (entries []object.Entry, dir int, note object.Entry, err error) {
	if tree != "" {
		entries, err = g.Level(ctx, tree)
	}
	dir = -1
	for i, e := range entries {
		switch {
		case e.Path == path:
			note = e
		case len(path) > 2 && e.Path == path[:2] && e.Mode == object.ModeTree:
			dir = i
		}
	}
	return entries, dir, note, err
}

// kinds are the entries that are no files, by mode.
var kinds = map[string]string{object.ModeTree: "a directory", "120000": "a symbolic link", object.ModeSubmodule: "a submodule"}

// Read returns the text of the note of a commit. The error is ErrNone if there is none, or ErrMalformed.
func Read(ctx context.Context, r *repo.Repo, commit string) ([]byte, error) {
	text, err := read(ctx, r.Git(), commit)
	switch {
	case errors.Is(err, ErrNone):
		return nil, fmt.Errorf("%w of commit %.12s in %s", ErrNone, commit, Ref)
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", Ref, err)
	}
	return text, nil
}

func read(ctx context.Context, g git.Repo, commit string) ([]byte, error) {
	_, tree, err := present(ctx, g)
	for path := commit; tree != "" && err == nil; path = path[2:] {
		entries, dir, note, err := level(ctx, g, tree, path)
		switch {
		case err != nil:
			return nil, err
		case kinds[note.Mode] != "":
			return nil, fmt.Errorf("%w: it is %s", ErrMalformed, kinds[note.Mode])
		case note.Oid != "":
			return body(ctx, g, note.Oid)
		case dir < 0:
			return nil, ErrNone
		}
		tree = entries[dir].Oid
	}
	return nil, cmp.Or(err, ErrNone)
}

// Has reports whether a commit has a note.
func Has(ctx context.Context, r *repo.Repo, commit string) (bool, error) {
	_, err := Read(ctx, r, commit)
	if errors.Is(err, ErrNone) {
		return false, nil
	}
	return err == nil, err
}

// A Note is a parsed note.
type Note struct {
	Landed           // the commit and the tree that it is about
	Statement string // the message
	Signed    bool   // it has a signature, which may be bad
}

// Parse parses the text of a note. It permits only the headers of a commit that Store can have written.
func Parse(text []byte) (Note, error) {
	head, message, ok := bytes.Cut(text, []byte("\n\n"))
	if !ok {
		return Note{}, errors.New("the note is not the text of a commit")
	}
	var names []string
	for line := range strings.SplitSeq(string(head), "\n") {
		if name, _, _ := strings.Cut(line, " "); name != "" { // a line of a value begins with a space
			names = append(names, name)
		}
	}
	signature := len(names) == 5 && slices.Contains([]string{"gpgsig", "gpgsig-sha256"}, names[4])
	if want := []string{"tree", "parent", "author", "committer"}; !slices.Equal(names[:min(4, len(names))], want) || len(names) > 4 && !signature {
		return Note{}, fmt.Errorf("the note is not the text of a receipt's commit: it has the headers %s", strings.Join(names, ", "))
	}
	c := object.ParseCommit("", text)
	return Note{Landed{c.Parents[0], c.Tree}, string(message), signature}, nil
}

// The results of verifying a signature.
const (
	Good     = "good"
	Bad      = "bad"
	Unknown  = "unknown" // git cannot verify it, or it is good and its key is not trusted, expired or revoked
	Unsigned = "unsigned"
)

// A Signature is the result of verifying a signature.
type Signature struct {
	Result string `json:"result"`
	Signer string `json:"signer,omitempty"` // as in the user's key ring or list of allowed signers
	Key    string `json:"key,omitempty"`    // fingerprint
	Detail string `json:"detail,omitempty"` // the reason and git's message, if the result is not good
}

// doubts are the reasons why a signature is not Good, by git's code for it.
var doubts = map[string]string{
	"U": "it is good, but its key is not trusted",
	"X": "it is good, but has expired",
	"Y": "it is good, but its key has expired",
	"R": "it is good, but its key has been revoked",
	"B": "the receipt is not the signed one",
	"E": "its key is not known",
}

// Verify verifies the signature of a note's text with git and the user's settings.
func Verify(ctx context.Context, r *repo.Repo, text []byte) (Signature, error) {
	note, err := Parse(text)
	if err != nil || !note.Signed {
		return Signature{Result: Unsigned}, err
	}
	g := r.Git()
	out, err := g.Feed(ctx, text, "hash-object", "-w", "-t", "commit", "--stdin")
	if err != nil {
		return Signature{}, fmt.Errorf("store the receipt's commit: %w", err)
	}
	oid := strings.TrimSpace(string(out))
	verified := g.Run(ctx, "verify-commit", oid)
	if verified != nil && git.ExitCode(verified) < 0 {
		return Signature{}, verified
	}
	shown, err := g.Line(ctx, "log", "-1", "--no-show-signature", "--no-patch", "--format=%G?%x00%GS%x00%GF", oid)
	fields := strings.Split(shown, "\x00")
	if err != nil || len(fields) != 3 {
		return Signature{}, fmt.Errorf("verify the signature: %w", cmp.Or(err, verified))
	}
	s := Signature{Result: Unknown, Signer: fields[1], Key: fields[2]}
	switch {
	case fields[0] == "G" && verified == nil:
		s.Result = Good
		return s, nil
	case fields[0] == "B":
		s.Result = Bad
	}
	s.Detail = cmp.Or(doubts[fields[0]], "git cannot verify it")
	if said, ok := errors.AsType[*git.Error](verified); ok {
		s.Detail += ": " + strings.Join(strings.Fields(said.Stderr), " ")
	}
	return s, nil
}
