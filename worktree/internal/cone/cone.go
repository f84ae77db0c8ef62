// Package cone selects files as a sparse checkout in git's cone mode does.
package cone

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// A Cone selects the files in some directories, and the files directly in the parents of these directories.
type Cone struct {
	Dirs []string `json:"dirs"`
}

// alwaysThere returns the directories that every worktree contains, because coven and the tracker use them.
func alwaysThere() []string { return []string{".beads", ".coven"} }

// Skips reports whether a path is outside the cone. A nil cone skips nothing.
func (c *Cone) Skips(name string) bool {
	if c == nil {
		return false
	}
	dir := path.Dir(name)
	within := func(d string) bool { return dir == d || strings.HasPrefix(d, dir+"/") || strings.HasPrefix(dir, d+"/") }
	return dir != "." && !slices.ContainsFunc(c.Dirs, within) && !slices.ContainsFunc(alwaysThere(), within)
}

// Key returns a text that differs for different cones. It is empty for nil.
func (c *Cone) Key() string {
	if c == nil {
		return ""
	}
	return fmt.Sprintf("%q", c.Dirs)
}

// Patterns returns the cone as the text of git's sparse-checkout file.
func (c *Cone) Patterns() string {
	dirs := slices.Concat(c.Dirs, alwaysThere())
	above := map[string]bool{}
	for _, dir := range dirs {
		for up := path.Dir(dir); up != "."; up = path.Dir(up) {
			above[up] = true
		}
	}
	all := dirs
	for dir := range above {
		all = append(all, dir)
	}
	slices.Sort(all)
	text := "/*\n!/*/\n"
	for _, dir := range slices.Compact(all) {
		text += "/" + coneEscape.Replace(dir) + "/\n"
		if above[dir] && !slices.Contains(dirs, dir) {
			text += "!/" + coneEscape.Replace(dir) + "/*/\n"
		}
	}
	return text
}

var coneEscape = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)

// Parse parses the text of git's sparse-checkout file.
func Parse(text string) (*Cone, error) {
	c := &Cone{}
	var above []string
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		name, negated := strings.CutPrefix(line, "!")
		name, isDir := strings.CutSuffix(name, "/")
		name = strings.TrimPrefix(name, "/")
		switch {
		case line == "/*" || line == "!/*/" || line == "":
		case isDir && negated && strings.HasSuffix(name, "/*"):
			above = append(above, unescaped(strings.TrimSuffix(name, "/*")))
		case isDir && !negated:
			c.Dirs = append(c.Dirs, unescaped(name))
		default:
			return nil, fmt.Errorf("%q is not a pattern of git's cone mode", line)
		}
	}
	c.Dirs = slices.DeleteFunc(c.Dirs, func(dir string) bool { return slices.Contains(above, dir) })
	return c, nil
}

// unescaped removes the escapes of coneEscape.
func unescaped(text string) string {
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) {
			i++
		}
		out.WriteByte(text[i])
	}
	return out.String()
}
