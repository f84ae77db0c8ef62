package registry

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// runnerOf is the first line of a script as the kernel takes it: the program that
// runs it, and what that is given. Empty: it is no script.
func runnerOf(head []byte) []string {
	line, ok := bytes.CutPrefix(head, []byte("#!"))
	if !ok {
		return nil
	}
	if end := bytes.IndexAny(line, "\n\x00"); end >= 0 {
		line = line[:end]
	}
	return strings.FieldsFunc(string(line), func(c rune) bool { return c == ' ' || c == '\t' })
}

// unpinned says why a pinned script would not run what was trusted: because the
// repository decides what runs it. Empty when it does not.
func (r *Registry) unpinned(runner []string) string {
	switch {
	case len(runner) == 0:
		return ""
	case !filepath.IsAbs(runner[0]):
		return fmt.Sprintf("its first line has %q, which is relative: name the whole path", runner[0])
	case r.options.UntrustedPaths.Contains(runner[0]):
		return inside(runner[0])
	case filepath.Base(runner[0]) == "env":
		return r.byEnv(runner[1:])
	}
	return ""
}

func inside(program string) string {
	return fmt.Sprintf("its first line leads to %q, which the repository can change: what runs would not be what was trusted", program)
}

// byEnv is unpinned for what env is given: the name of a program on PATH. What else
// env can be told is not followed.
func (r *Registry) byEnv(words []string) string {
	if len(words) > 0 && words[0] == "-S" {
		words = words[1:]
	}
	if len(words) == 0 || strings.HasPrefix(words[0], "-") || strings.ContainsAny(words[0], "=\"'\\$") {
		return "its first line does not say plainly what env runs: write env NAME, or env -S NAME ARGUMENTS"
	}
	name := words[0]
	if strings.Contains(name, "/") {
		return r.unpinned(words[:1])
	}
	for _, dir := range filepath.SplitList(r.options.Path) {
		file := filepath.Join(dir, name)
		if !filepath.IsAbs(dir) { // it is looked for where plugins start, which is not in the repository
			continue
		}
		if info, err := os.Stat(file); err != nil || info.IsDir() || unix.Access(file, unix.X_OK) != nil {
			continue
		}
		if r.options.UntrustedPaths.Contains(file) {
			return inside(file)
		}
		return ""
	}
	return ""
}
