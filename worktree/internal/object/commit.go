package object

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

// A Commit is a commit object.
type Commit struct {
	Oid, Tree string
	Parents   []string
	Author    string // "Name <email> seconds zone"
	Time      time.Time
	Message   string
}

// ParseCommit parses the content of a commit object.
func ParseCommit(oid string, raw []byte) Commit {
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

// Relations returns the tree and parent lines of a commit. It fails unless these objects exist.
func (s *Storage) Relations(tree ID, parents []ID) ([]byte, error) {
	if err := s.mustBe(tree, plumbing.TreeObject); err != nil {
		return nil, err
	}
	lines := fmt.Appendf(nil, "tree %s\n", tree)
	seen := map[ID]bool{}
	for _, parent := range parents {
		if err := s.mustBe(parent, plumbing.CommitObject); err != nil || seen[parent] {
			return nil, errors.Join(err, ErrUnsupported)
		}
		seen[parent] = true
		lines = fmt.Appendf(lines, "parent %s\n", parent)
	}
	return lines, nil
}

func (s *Storage) mustBe(oid ID, kind plumbing.ObjectType) error {
	found, err := s.Kind(oid)
	if err == nil && found != kind.String() {
		err = ErrUnsupported
	}
	return err
}
