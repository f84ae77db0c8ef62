package search_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/search"
)

// Lines are returned with their context, without duplicates.
func TestAround(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{"a": "1\n2\nx3\n4\nx5\n6\n7\n8\n", "b": "x1", "c": strings.Repeat("x\n", 50)} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	index := search.New(search.Options{Root: root, Now: time.Now, List: func(context.Context) (search.Listing, error) {
		return search.Listing{Files: []string{"a", "b", "c"}}, nil
	}})
	show := func(lines []search.Line) (text string) {
		for _, l := range lines {
			text += fmt.Sprintf("%s%d:%s ", l.Path, l.Line, l.Text)
		}
		return text
	}
	found, more, err := index.Search(t.Context(), "x", search.QueryOptions{Glob: "[ab]"})
	if err != nil || more || show(found) != "a3:x3 a5:x5 b1:x1 " {
		t.Fatalf("%s, %v (%v)", show(found), more, err)
	}
	for n, want := range map[int]string{
		0: "a3:x3 a5:x5 b1:x1 ", 1: "a2:2 a3:x3 a4:4 a5:x5 a6:6 b1:x1 ", 9: "a1:1 a2:2 a3:x3 a4:4 a5:x5 a6:6 a7:7 a8:8 b1:x1 ",
	} {
		if all, err := index.Around(found, n); err != nil || show(all) != want {
			t.Errorf("%d lines around: %s (%v)", n, show(all), err)
		}
	}
	found, more, err = index.Search(t.Context(), "x", search.QueryOptions{First: true})
	if err != nil || more || show(found) != "a3:x3 b1:x1 c1:x " {
		t.Errorf("the first of each: %s, %v (%v)", show(found), more, err)
	}
}
