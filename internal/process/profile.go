package process

import (
	"path/filepath"
	"strings"
)

// sandboxExec is the program of macOS that runs a command with a profile. Apple has deprecated it
// but uses it.
const sandboxExec = "/usr/bin/sandbox-exec"

// profileBegin allows everything except changing files and signalling processes outside.
// It includes the common devices; the ttys are the terminals that the program opens.
const profileBegin = `(version 1)
(allow default)
(deny file-write*)
(deny signal)
(allow signal (target same-sandbox))
(allow file-write* (literal "/dev/null") (literal "/dev/zero") (literal "/dev/random") (literal "/dev/urandom"))
(allow file-write* (literal "/dev/tty") (literal "/dev/ptmx") (regex #"^/dev/ttys[0-9]+$"))
`

// profile returns the limits as a sandbox-exec profile, in which the last matching rule
// wins. Hide also applies to sockets.
func (l *limits) profile() string {
	var p strings.Builder
	p.WriteString(profileBegin)
	for _, path := range l.Write {
		p.WriteString("(allow file-write* " + below(path) + ")\n")
	}
	for dir, shown := range l.partialDirs() {
		p.WriteString("(deny file-read-data " + below(text(dir)) + ")\n")
		for _, path := range shown {
			p.WriteString("(allow file-read-data " + below(text(path)) + ")\n")
		}
	}
	for _, path := range l.Hide {
		p.WriteString("(deny file-read* file-write* network-outbound " + below(path) + ")\n")
	}
	return p.String()
}

// below returns the profile filter for a path and everything below it. The kernel
// compares paths without symbolic links, and /tmp and /var are links on macOS.
func below(path text) string {
	name := string(path)
	if found, err := filepath.EvalSymlinks(name); err == nil {
		name = found
	}
	return `(subpath "` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(name) + `")`
}

// profiled returns the command line that runs the program at path within the limits.
func (l *limits) profiled(path string, argv []string) []string {
	return append([]string{sandboxExec, "-p", l.profile(), path}, argv[1:]...)
}
