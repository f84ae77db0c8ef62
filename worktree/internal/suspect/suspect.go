// Package suspect recognizes files that look like secrets of a person, by their names and contents.
package suspect

import (
	"bytes"
	"context"
	"io"
	"path"
	"strings"

	"github.com/coven-run/coven/internal/text/lazyregexp"
	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/object"
)

// MaxSize is the size in bytes up to which files are searched for secrets.
const MaxSize = 10 << 20

// A Blob is the content of changed files.
type Blob struct {
	Oid   string
	Paths []string // the files
	Size  int64    // in bytes
	Text  []byte   // nil if it has more than MaxSize bytes
}

// Find returns the changed files that look like secrets, each with the reason. It also passes their contents, and those
// of all other changed files, to read, unless that is nil.
func Find(ctx context.Context, g git.Repo, changes []object.Change, read func(Blob)) (reasons map[string]string, err error) {
	reasons = map[string]string{}
	paths := map[string][]string{} // by object ID
	for _, change := range changes {
		if change.Status == 'D' || change.Mode == object.ModeSubmodule || content.IsReserved(change.Path) {
			continue
		}
		if reason := Name(change.Path); reason != "" {
			reasons[change.Path] = reason
		}
		paths[change.Oid] = append(paths[change.Oid], change.Path)
	}
	err = eachBlob(ctx, g, paths, func(b Blob) {
		if reason := Content(b.Text); reason != "" {
			for _, p := range b.Paths {
				reasons[p] = reason
			}
		}
		if read != nil {
			read(b)
		}
	})
	return reasons, err
}

// eachBlob calls visit for each of the blobs, which are the keys of paths.
func eachBlob(ctx context.Context, g git.Repo, paths map[string][]string, visit func(Blob)) error {
	var oids, small []string
	for oid := range paths {
		oids = append(oids, oid)
	}
	sizes, err := g.Sizes(ctx, oids)
	if err != nil {
		return err
	}
	for oid, size := range sizes {
		if size > MaxSize {
			visit(Blob{Oid: oid, Paths: paths[oid], Size: size})
		} else {
			small = append(small, oid)
		}
	}
	return g.Objects(ctx, small, func(o object.Object, body io.Reader) error {
		text, err := io.ReadAll(body)
		if err == nil {
			visit(Blob{Oid: o.Oid, Paths: paths[o.Oid], Size: sizes[o.Oid], Text: text})
		}
		return err
	})
}

// Name returns the reason why the name of a file is suspect, or "".
func Name(p string) string {
	name := strings.ToLower(path.Base(p))
	switch name {
	case ".env":
		return "an environment file"
	case ".env.example", ".env.sample", ".env.template", ".env.dist":
		return ""
	case "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", ".netrc", ".pgpass", ".git-credentials":
		return "a credentials file"
	}
	if strings.HasPrefix(name, ".env.") {
		return "an environment file"
	}
	switch path.Ext(name) {
	case ".p12", ".pfx", ".jks", ".keystore":
		return "a private key store"
	}
	return ""
}

// tokens lists the types of secrets. Each secret of a type contains hint.
var tokens = []struct {
	hint, reason string
	pattern      *lazyregexp.Regexp
}{
	{"PRIVATE KEY", "a private key", lazyregexp.New(`-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----`)},
	{"AKIA", "an AWS access key", lazyregexp.New(`\bAKIA[0-9A-Z]{16}\b`)},
	{"gh", "a GitHub token", lazyregexp.New(`\b(?:gh[pousr]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9_]{22,})`)},
	{"sk-ant-", "an Anthropic key", lazyregexp.New(`\bsk-ant-[A-Za-z0-9_-]{20,}`)},
}

// Content returns the reason why the content of a file is suspect, or "".
func Content(content []byte) string {
	for _, t := range tokens {
		if !bytes.Contains(content, []byte(t.hint)) {
			continue
		}
		for _, match := range t.pattern.FindAllString(string(content), -1) {
			if !strings.HasSuffix(match, "EXAMPLE") { // AWS's documentation uses such keys
				return t.reason
			}
		}
	}
	return ""
}
