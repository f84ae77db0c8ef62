package workspace

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/process/reads"
	"github.com/coven-run/coven/runner"
)

// addReads adds the record of the files that a command read to its result.
func (s *Workspace) addReads(ctx context.Context, ran *runner.Ran, command string, record []byte) (err error) {
	read, inputs := reads.Split(record)
	if ran.Read = s.describeReads(read); ran.Read != "" {
		if ran.Reads, err = s.Session.KeepReads(read); err != nil {
			return err
		}
	}
	if inputs != nil && !ran.NotIsolated {
		ran.Keep = func() {
			if err := s.keepPass(ctx, command, inputs); err != nil {
				s.warn(err.Error()) // the command has passed
			}
		}
	}
	return nil
}

// maxReadPlaces limits the places that a description names.
const maxReadPlaces = 3

// describeReads describes a list of files outside of the worktree, such as "1204 in node_modules, 3 in deps". It returns "" for an
// empty list.
func (s *Workspace) describeReads(list []byte) string {
	count := map[string]int{}
	var places []string
	for line := range bytes.Lines(list) {
		_, path, _ := strings.Cut(strings.TrimSuffix(string(line), "\n"), "  ")
		place := s.placeOf(path)
		if count[place]++; count[place] == 1 {
			places = append(places, place)
		}
	}
	slices.SortStableFunc(places, func(a, b string) int { return count[b] - count[a] })
	var texts []string
	for i, place := range places {
		if i == maxReadPlaces {
			texts = append(texts, fmt.Sprintf("in %d other places", len(places)-i))
			break
		}
		texts = append(texts, fmt.Sprintf("%d in %s", count[place], place))
	}
	if len(texts) == 0 {
		return ""
	}
	return strings.Join(texts, ", ")
}

// placeOf returns the place of a file: a name at the top of the main checkout, a directory of installed packages, or the parent
// directory.
func (s *Workspace) placeOf(path string) string {
	if rel := s.inRepository(path); filepath.IsLocal(rel) {
		top, _, _ := strings.Cut(rel, "/")
		return top
	}
	if dir := reads.Package(path); dir != "" {
		return dir
	}
	return filepath.Dir(path)
}
