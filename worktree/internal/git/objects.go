package git

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/coven-run/coven/worktree/internal/object"
)

// ErrNoObject is returned for an object that does not exist.
var ErrNoObject = errors.New("no such object")

// Objects reads objects in order. visit need not read the whole body.
func (r Repo) Objects(ctx context.Context, oids []string, visit func(object.Object, io.Reader) error) error {
	if len(oids) == 0 {
		return nil
	}
	read, err := objects(ctx, r, oids, (*object.Storage).Bodies)
	if err == nil {
		for _, o := range read {
			if err := visit(o.Object, bytes.NewReader(o.Body)); err != nil {
				return err
			}
		}
		return nil
	}
	stdin := []byte(strings.Join(oids, "\n") + "\n")
	return r.Stream(ctx, stdin, func(out io.Reader) error {
		in := bufio.NewReader(out)
		for range oids {
			if err := nextObject(in, visit); err != nil {
				return err
			}
		}
		return nil
	}, "cat-file", "--batch")
}

func nextObject(in *bufio.Reader, visit func(object.Object, io.Reader) error) error {
	header, err := in.ReadString('\n')
	if err != nil {
		return fmt.Errorf("read git objects: %w", err)
	}
	words := strings.Fields(header)
	if len(words) != 3 {
		return fmt.Errorf("%s: %w", strings.TrimSpace(header), ErrNoObject)
	}
	size, err := strconv.ParseInt(words[2], 10, 64)
	if err != nil {
		return fmt.Errorf("read git objects: %w", err)
	}
	body := io.LimitReader(in, size)
	if err := visit(object.Object{Oid: words[0], Kind: words[1], Size: size}, body); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, body); err != nil {
		return fmt.Errorf("read git objects: %w", err)
	}
	_, err = in.Discard(1) // the line feed after the body
	return err
}

// Sizes returns the size in bytes of each object.
func (r Repo) Sizes(ctx context.Context, oids []string) (map[string]int64, error) {
	read, err := objects(ctx, r, oids, (*object.Storage).Sizes)
	if err == nil {
		return read, nil
	}
	answers, err := r.describe(ctx, oids, "%(objectsize)")
	if err != nil {
		return nil, err
	}
	sizes := make(map[string]int64, len(oids))
	for i, text := range answers {
		if sizes[oids[i]], err = strconv.ParseInt(text, 10, 64); err != nil {
			return nil, fmt.Errorf("%s: %w", oids[i], ErrNoObject)
		}
	}
	return sizes, nil
}

// Kinds returns the types of those objects that exist, by the names that were given for them.
func (r Repo) Kinds(ctx context.Context, names []string) (map[string]string, error) {
	answers, err := r.describe(ctx, names, "%(objecttype)")
	if err != nil {
		return nil, err
	}
	kinds := map[string]string{}
	for i, kind := range answers {
		if kind != "missing" {
			kinds[names[i]] = kind
		}
	}
	return kinds, nil
}

// describe returns a field of each object, or "missing".
func (r Repo) describe(ctx context.Context, names []string, field string) ([]string, error) {
	if len(names) == 0 {
		return nil, nil
	}
	out, err := r.Feed(ctx, []byte(strings.Join(names, "\n")+"\n"), "cat-file", "--batch-check=%(objectname) "+field)
	if err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != len(names) {
		return nil, fmt.Errorf("git described %d of %d objects", len(lines), len(names))
	}
	for i, line := range lines {
		_, lines[i], _ = strings.Cut(line, " ")
	}
	return lines, nil
}

// maxCommit limits the part of a commit that is read, in bytes.
const maxCommit = 8 << 20

// Commits reads the commits with these object IDs.
func (r Repo) Commits(ctx context.Context, oids ...string) ([]object.Commit, error) {
	commits, err := objects(ctx, r, oids, (*object.Storage).Commits)
	if err == nil {
		return commits, nil
	}
	commits = nil
	err = r.Objects(ctx, oids, func(o object.Object, body io.Reader) error {
		if o.Kind != "commit" {
			return fmt.Errorf("%s is a %s, not a commit: %w", o.Oid, o.Kind, ErrNoObject)
		}
		raw, err := io.ReadAll(io.LimitReader(body, maxCommit)) // a longer message is cut
		commits = append(commits, object.ParseCommit(o.Oid, raw))
		return err
	})
	return commits, err
}

// Commit reads the commit of a revision.
func (r Repo) Commit(ctx context.Context, rev string) (object.Commit, error) {
	c, err := objects(ctx, r, []string{rev}, func(s *object.Storage, ids []object.ID) (object.Commit, error) {
		return s.Commit(ids[0])
	})
	if err == nil {
		return c, nil
	}
	oid, err := r.Line(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", rev+"^{commit}")
	if err != nil {
		return object.Commit{}, fmt.Errorf("resolve %q: %w", rev, err)
	}
	commits, err := r.Commits(ctx, oid)
	if err != nil {
		return object.Commit{}, err
	}
	return commits[0], nil
}
