package process

import (
	"path/filepath"
	"strings"
)

// sandboxExec is macOS's program that runs a command in a profile. Apple calls it deprecated,
// and uses it.
const sandboxExec = "/usr/bin/sandbox-exec"

// profileBegin allows everything, except to change files, and to signal processes outside.
// The devices are those that every program uses; ttys are the terminals that it opens.
const profileBegin = `(version 1)
(allow default)
(deny file-write*)
(deny signal)
(allow signal (target same-sandbox))
(allow file-write* (literal "/dev/null") (literal "/dev/zero") (literal "/dev/random") (literal "/dev/urandom"))
(allow file-write* (literal "/dev/tty") (literal "/dev/ptmx") (regex #"^/dev/ttys[0-9]+$"))
`

// profile returns the limits as a profile of sandbox-exec, in which the last rule that applies
// counts: what is in Write may be changed, and what is in Hide is refused, also as a socket.
func (l *limits) profile() string {
	var p strings.Builder
	p.WriteString(profileBegin)
	for _, path := range l.Write {
		p.WriteString("(allow file-write* " + below(path) + ")\n")
	}
	for _, path := range l.Hide {
		p.WriteString("(deny file-read* file-write* network-outbound " + below(path) + ")\n")
	}
	return p.String()
}

// below returns the filter of a profile for a path and all that is below it. The kernel
// compares paths without symbolic links; those of /tmp and /var are such links.
func below(path text) string {
	name := string(path)
	if found, err := filepath.EvalSymlinks(name); err == nil {
		name = found
	}
	return `(subpath "` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(name) + `")`
}

// profiled returns the command line that runs a program, found at path, in the limits.
func (l *limits) profiled(path string, argv []string) []string {
	return append([]string{sandboxExec, "-p", l.profile(), path}, argv[1:]...)
}
