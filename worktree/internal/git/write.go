package git

import (
	"bytes"
	"compress/zlib"
	"context"
	"crypto/rand"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/coven-run/coven/internal/text/lazyregexp"
	"github.com/coven-run/coven/worktree/internal/object"
)

// Blob stores content and returns its object ID.
func (r Repo) Blob(ctx context.Context, content []byte) (string, error) {
	if oid, err := r.writeLoose(ctx, "blob", content); err == nil {
		return oid, nil
	}
	out, err := r.Feed(ctx, content, "hash-object", "-w", "--no-filters", "--stdin")
	return strings.TrimSpace(string(out)), err
}

// Level lists the entries of one tree object, without those of the trees in it. Their paths are names.
func (r Repo) Level(ctx context.Context, tree string) ([]object.Entry, error) {
	entries, err := objects(ctx, r, []string{tree}, func(s *object.Storage, trees []object.ID) ([]object.Entry, error) {
		return s.Level(trees[0])
	})
	if err == nil {
		return entries, nil
	}
	fields, err := r.Fields(ctx, "ls-tree", "-z", "--full-tree", tree)
	entries = nil
	for _, field := range fields {
		meta, name, _ := strings.Cut(field, "\t")
		if words := strings.Fields(meta); len(words) == 3 {
			entries = append(entries, object.Entry{Mode: words[0], Oid: words[2], Path: name})
		}
	}
	return entries, err
}

// MakeTree stores a tree object with these entries, whose paths are names, and returns its object ID.
func (r Repo) MakeTree(ctx context.Context, entries []object.Entry) (string, error) {
	body, err := object.TreeBody(entries)
	if err == nil {
		if oid, err := r.writeLoose(ctx, "tree", body); err == nil {
			return oid, nil
		}
	}
	var in bytes.Buffer
	for _, e := range entries {
		kind := "blob"
		if e.Mode == object.ModeTree {
			kind = "tree"
		}
		fmt.Fprintf(&in, "%s %s %s\t%s\x00", e.Mode, kind, e.Oid, e.Path)
	}
	out, err := r.Feed(ctx, in.Bytes(), "mktree", "-z")
	return strings.TrimSpace(string(out)), err
}

// maxBlob is the size in bytes above which git reads a file.
const maxBlob = 8 << 20

// BlobOf stores the content of a regular file and returns its object ID.
func (r Repo) BlobOf(ctx context.Context, file *os.File) (string, error) {
	content, err := io.ReadAll(io.LimitReader(file, maxBlob))
	if err != nil {
		return "", err
	}
	if len(content) < maxBlob {
		return r.Blob(ctx, content)
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	r.Settings = append(slices.Clip(r.Settings), Setting{"core.bigFileThreshold", "8m"}) // git does not read it as a whole
	out, err := r.feed(ctx, file, []string{"hash-object", "-w", "--no-filters", "--stdin"})
	return strings.TrimSpace(string(out)), err
}

// A NewCommit is a commit to store. Its author and committer are the user, according to Repo.Env and the
// configuration.
type NewCommit struct {
	Tree    string
	Parents []string
	Message string   // valid UTF-8 without NUL
	Options []string // options of `git commit-tree`; if there are any, git stores the commit
}

// StoreCommit stores a commit and returns its object ID.
func (r Repo) StoreCommit(ctx context.Context, c NewCommit) (string, error) {
	if body, err := r.commitBody(ctx, c); err == nil {
		if oid, err := r.writeLoose(ctx, "commit", body); err == nil {
			return oid, nil
		}
	}
	args := []string{"commit-tree"}
	for _, parent := range c.Parents {
		args = append(args, "-p", parent)
	}
	out, err := r.Feed(ctx, []byte(c.Message), append(append(args, c.Options...), c.Tree)...)
	return strings.TrimSpace(string(out)), err
}

// CleanMessage converts text to a commit message that git accepts.
func CleanMessage(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "")
	return strings.TrimRight(text, "\n") + "\n"
}

// commitBody returns the commit object that `git commit-tree` would write, or object.ErrUnsupported.
func (r Repo) commitBody(ctx context.Context, c NewCommit) ([]byte, error) {
	if len(c.Options) > 0 {
		return nil, object.ErrUnsupported
	}
	body, err := objects(ctx, r, append([]string{c.Tree}, c.Parents...), func(s *object.Storage, ids []object.ID) ([]byte, error) {
		return s.Relations(ids[0], ids[1:])
	})
	now := time.Now()
	for _, who := range []string{"author", "committer"} {
		if err != nil {
			return nil, err
		}
		var ident string
		ident, err = r.ident(ctx, who, now)
		body = fmt.Appendf(body, "%s %s\n", who, ident)
	}
	body = fmt.Appendf(body, "\n%s", c.Message)
	if !utf8.Valid(body) {
		return nil, object.ErrUnsupported // git converts the encoding
	}
	return body, err
}

// ident returns the author or committer line of a new commit.
func (r Repo) ident(ctx context.Context, who string, now time.Time) (string, error) {
	env := map[string]string{}
	for _, entry := range r.environ() {
		name, value, _ := strings.Cut(entry, "=")
		env[name] = value
	}
	settings, ok := r.withoutNeutral().known(ctx, `^(user|author|committer)\.(name|email)$`, false)
	if !ok {
		return "", object.ErrUnsupported
	}
	configured := map[string]string{}
	for _, s := range settings {
		configured[s.Key] = s.Value
	}
	variable := "GIT_" + strings.ToUpper(who) + "_"
	choose := func(what string) (string, error) {
		if value, set := env[variable+strings.ToUpper(what)]; set && value == "" {
			return "", object.ErrUnsupported // git handles an empty address
		}
		for _, value := range []string{env[variable+strings.ToUpper(what)], configured[who+"."+what], configured["user."+what]} {
			if value != "" {
				return trimIdent(value)
			}
		}
		return "", object.ErrUnsupported // git has more sources, and its own errors
	}
	name, err := choose("name")
	if err != nil {
		return "", err
	}
	email, err := choose("email")
	if err != nil {
		return "", err
	}
	date, given := env[variable+"DATE"]
	if !given {
		return fmt.Sprintf("%s <%s> %d %s", name, email, now.Unix(), now.Format("-0700")), nil
	}
	if date, ok = strings.CutPrefix(date, "@"); !ok || !plainDateRE.MatchString(date) {
		return "", object.ErrUnsupported
	}
	return fmt.Sprintf("%s <%s> %s", name, email, date), nil
}

// plainDateRE matches a date in the format of a commit object.
var plainDateRE = lazyregexp.New(`^[0-9]{1,12} [+-][0-9]{4}$`)

// trimIdent removes the characters from a name or address that git removes. Whether git removes dots
// depends on its version (before 2.44 it does), so then git must be run.
func trimIdent(text string) (string, error) {
	trim := func(crud string) string {
		return strings.TrimFunc(text, func(c rune) bool { return c <= ' ' || strings.ContainsRune(crud, c) })
	}
	trimmed := trim(",:;<>\"\\'")
	if trimmed != trim(".,:;<>\"\\'") {
		return "", object.ErrUnsupported
	}
	text = strings.NewReplacer("\n", "", "<", "", ">", "").Replace(trimmed)
	if text == "" {
		return "", object.ErrUnsupported
	}
	return text, nil
}

// writesInProcess reports whether objects are written in process. This requires the common format, and no
// setting that only git supports.
func (r Repo) writesInProcess(ctx context.Context) bool {
	if !r.ReadInProcess() || r.ObjectDir != "" {
		return false
	}
	special, ok := r.withoutNeutral().known(ctx, `^core\.(sharedrepository|fsync.*)$`, false)
	return ok && len(special) == 0
}

// writeLoose writes a loose object to disk, unless the repository already has it as a loose object.
func (r Repo) writeLoose(ctx context.Context, kind string, body []byte) (string, error) {
	if !r.writesInProcess(ctx) {
		return "", object.ErrUnsupported
	}
	oid, header := objectID(kind, body)
	dir := filepath.Join(r.Store.dir, "objects", oid[:2])
	file := filepath.Join(dir, oid[2:])
	now := time.Now()
	if info, err := os.Lstat(file); err == nil && info.Mode().IsRegular() && os.Chtimes(file, now, now) == nil {
		return oid, nil // it is new now, so that git gc does not remove it before a ref reaches it
	}
	if err := os.Mkdir(dir, 0o777); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	temporary := filepath.Join(dir, "tmp_obj_"+rand.Text()) // git gc removes leftovers with this prefix
	out, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o444)
	if err != nil {
		return "", err
	}
	err = errors.Join(deflate(out, header, body), r.Store.writeOut(out))
	if err = errors.Join(err, out.Close()); err == nil {
		err = os.Rename(temporary, file)
	}
	if err != nil {
		_ = os.Remove(temporary)
		return "", err
	}
	return oid, nil
}

// deflaters are reused, because each has tables of more than half a megabyte.
var deflaters = sync.Pool{New: func() any {
	w, _ := zlib.NewWriterLevel(nil, zlib.BestSpeed) // the level is valid
	return w
}}

// deflate compresses the parts of an object and writes them.
func deflate(to io.Writer, parts ...[]byte) error {
	w := deflaters.Get().(*zlib.Writer)
	defer deflaters.Put(w)
	w.Reset(to)
	for _, part := range parts {
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	return w.Close()
}

// objectID returns the SHA-1 ID of an object, and the header that precedes its body in its file.
func objectID(kind string, body []byte) (oid string, header []byte) {
	header = fmt.Appendf(nil, "%s %d\x00", kind, len(body))
	hash := sha1.New() //nolint:gosec // see the import
	hash.Write(header)
	hash.Write(body)
	return hex.EncodeToString(hash.Sum(nil)), header
}
