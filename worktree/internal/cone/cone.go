// Package cone selects files as a sparse checkout in git's cone mode does.
package cone

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// A Cone selects files as a sparse checkout in git's cone mode does: those in some directories,
// and those that are directly in the directories above.
type Cone struct {
	Dirs []string `json:"dirs"`
}

// alwaysThere are directories that every worktree has: coven and the tracker use them.
func alwaysThere() []string { return []string{".beads", ".coven"} }

// Skips reports whether a path is outside of the cone. Nothing is outside of no cone.
func (c *Cone) Skips(name string) bool {
	if c == nil {
		return false
	}
	dir := path.Dir(name)
	within := func(d string) bool { return dir == d || strings.HasPrefix(d, dir+"/") || strings.HasPrefix(dir, d+"/") }
	return dir != "." && !slices.ContainsFunc(c.Dirs, within) && !slices.ContainsFunc(alwaysThere(), within)
}

// Key distinguishes cones.
func (c *Cone) Key() string {
	if c == nil {
		return ""
	}
	return fmt.Sprintf("%q", c.Dirs)
}

// Patterns returns the cone as git's file of patterns.
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

// Parse reads git's file of patterns.
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
