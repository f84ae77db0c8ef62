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
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

// ErrNoObject is returned for an object that does not exist.
var ErrNoObject = errors.New("no such object")

// An Object describes an object read by Objects.
type Object struct {
	Oid, Kind string
	Size      int64
}

// Objects reads objects in order. visit need not read the whole body.
func (r Repo) Objects(ctx context.Context, oids []string, visit func(Object, io.Reader) error) error {
	if len(oids) == 0 {
		return nil
	}
	read, err := objects(ctx, r, oids, func(s *storage, ids []plumbing.Hash) ([]inMemory, error) {
		return s.bodies(ids)
	})
	if err == nil {
		for _, o := range read {
			if err := visit(o.Object, bytes.NewReader(o.body)); err != nil {
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

func nextObject(in *bufio.Reader, visit func(Object, io.Reader) error) error {
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
	if err := visit(Object{Oid: words[0], Kind: words[1], Size: size}, body); err != nil {
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
	read, err := objects(ctx, r, oids, func(s *storage, ids []plumbing.Hash) (map[string]int64, error) {
		return s.sizes(ids)
	})
	if err == nil {
		return read, nil
	}
	stdin := []byte(strings.Join(oids, "\n") + "\n")
	sizes := make(map[string]int64, len(oids))
	if len(oids) == 0 {
		return sizes, nil
	}
	out, err := r.Feed(ctx, stdin, "cat-file", "--batch-check=%(objectname) %(objectsize)")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(out)) {
		oid, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		if sizes[oid], err = strconv.ParseInt(text, 10, 64); err != nil {
			return nil, fmt.Errorf("%s: %w", oid, ErrNoObject)
		}
	}
	return sizes, nil
}

// A Commit is a commit object.
type Commit struct {
	Oid, Tree string
	Parents   []string
	Author    string // "Name <email> seconds zone"
	Time      time.Time
	Message   string
}

// Commits reads the commits with these object IDs.
func (r Repo) Commits(ctx context.Context, oids ...string) ([]Commit, error) {
	commits, err := objects(ctx, r, oids, func(s *storage, ids []plumbing.Hash) ([]Commit, error) {
		return s.commits(ids)
	})
	if err == nil {
		return commits, nil
	}
	commits = nil
	err = r.Objects(ctx, oids, func(o Object, body io.Reader) error {
		if o.Kind != "commit" {
			return fmt.Errorf("%s is a %s, not a commit: %w", o.Oid, o.Kind, ErrNoObject)
		}
		raw, err := io.ReadAll(body)
		commits = append(commits, parseCommit(o.Oid, raw))
		return err
	})
	return commits, err
}

// Commit reads the commit of a revision.
func (r Repo) Commit(ctx context.Context, rev string) (Commit, error) {
	c, err := objects(ctx, r, []string{rev}, func(s *storage, ids []plumbing.Hash) (Commit, error) {
		return s.commit(ids[0])
	})
	if err == nil {
		return c, nil
	}
	oid, err := r.Line(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", rev+"^{commit}")
	if err != nil {
		return Commit{}, fmt.Errorf("resolve %q: %w", rev, err)
	}
	commits, err := r.Commits(ctx, oid)
	if err != nil {
		return Commit{}, err
	}
	return commits[0], nil
}

func parseCommit(oid string, raw []byte) Commit {
	head, message, _ := bytes.Cut(raw, []byte("\n\n"))
	c := Commit{Oid: oid, Message: string(message)}
	for line := range strings.Lines(string(head)) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch key {
		case "tree":
			c.Tree = value
		case "parent":
			c.Parents = append(c.Parents, value)
		case "author":
			c.Author = value
		case "committer":
			c.Time = stamp(value)
		}
	}
	return c
}

func stamp(ident string) time.Time {
	words := strings.Fields(ident)
	if len(words) < 2 {
		return time.Time{}
	}
	seconds, err := strconv.ParseInt(words[len(words)-2], 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(seconds, 0)
}
