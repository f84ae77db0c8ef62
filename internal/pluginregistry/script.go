package pluginregistry

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// runnerOf parses the first line of a script as the kernel does: the interpreter and its
// argument. It returns nil if the file is not a script.
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

// unpinned returns why a pinned script could run something other than the trusted
// content: because the repository controls its interpreter. Otherwise it returns "".
func (r *Registry) unpinned(runner []string) string {
	switch {
	case len(runner) == 0:
		return ""
	case !filepath.IsAbs(runner[0]):
		return fmt.Sprintf("its interpreter %q is a relative path: use an absolute path", runner[0])
	case r.options.UntrustedPaths.Contains(runner[0]):
		return inside(runner[0])
	case filepath.Base(runner[0]) == "env":
		return r.byEnv(runner[1:])
	}
	return ""
}

func inside(program string) string {
	return fmt.Sprintf("its interpreter %q is inside the repository, which could change it after it was trusted", program)
}

// byEnv is like unpinned for the arguments of env. It supports only a program name, with or
// without -S.
func (r *Registry) byEnv(words []string) string {
	if len(words) > 0 && words[0] == "-S" {
		words = words[1:]
	}
	if len(words) == 0 || strings.HasPrefix(words[0], "-") || strings.ContainsAny(words[0], "=\"'\\$") {
		return "its env line is not supported: use env NAME or env -S NAME ARGUMENTS"
	}
	name := words[0]
	if strings.Contains(name, "/") {
		return r.unpinned(words[:1])
	}
	for _, dir := range filepath.SplitList(r.options.Path) {
		file := filepath.Join(dir, name)
		if !filepath.IsAbs(dir) { // relative to the working directory of plugins, which is not in the repository
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
