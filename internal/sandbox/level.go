package sandbox

import (
	"errors"
	"fmt"
	"path/filepath"
)

// Level is the degree to which a machine enforces the sandbox.
type Level string

// Levels.
const (
	Full    Level = "full"    // changes, reads and signals are limited
	Partial Level = "partial" // changes are limited; Gaps lists the missing limits
	None    Level = "none"    // nothing is limited
)

// Landlock versions that add limits.
const (
	abiTruncate = 3 // Linux 6.2
	abiScope    = 6 // Linux 6.12
	abiSockets  = 9
)

// Fences reports whether the kernel prevents programs of a task from changing the main checkout
// and the repository.
func (s *Sandbox) Fences() bool {
	if s.Level() == None {
		return false
	}
	for _, path := range s.writable() {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			path = real
		}
		if within(s.o.Root, []string{path}) || within(s.o.GitDir, []string{path}) || within(path, []string{s.o.Root, s.o.GitDir}) {
			return false
		}
	}
	return true
}

// HasPrivateNetwork reports whether each program of a task has a network of its own.
func (s *Sandbox) HasPrivateNetwork() bool { return s.o.Settings.Network.IsPrivate() }

// CheckNetwork returns an error if each program should have a network of its own, and this machine does not allow it.
func (s *Sandbox) CheckNetwork() error {
	if !s.HasPrivateNetwork() {
		return nil
	}
	err := s.o.Private()
	if s.Level() == None {
		err = errors.New("there is no sandbox")
	}
	if err != nil {
		return fmt.Errorf("sandbox.network is private, but programs cannot have a network of their own on this machine: %w", err)
	}
	return nil
}

// Replaces reports whether programs see the contents that their room replaces.
func (s *Sandbox) Replaces() bool {
	e := s.o.Enforcement()
	return e.Any() && e.Covers
}

// Instructions describes the limits of commands to an agent, so that it recognizes refusals by the
// sandbox. It returns "" without a sandbox.
func (s *Sandbox) Instructions(readOnly bool) string {
	if s.Level() == None {
		return ""
	}
	where := "your working directory, "
	if readOnly {
		where = ""
	}
	network := ""
	if s.HasPrivateNetwork() {
		network = "localhost is theirs: nothing of the user's machine listens there. "
	}
	return "# What your commands can do\n\n" +
		"They run in a sandbox. They can change files in " + where + "$TMPDIR and the caches of the usual tools; elsewhere they get " +
		"\"Permission denied\" or \"Read-only file system\". They reach only the network hosts on a list. " + network +
		"Do not look for a way around it: if the task needs more, say in your final message what was refused."
}

// Level returns the degree to which this machine enforces the sandbox.
func (s *Sandbox) Level() Level {
	switch e := s.o.Enforcement(); {
	case !e.Any():
		return None
	case e.ABI < abiScope || !e.Covers:
		return Partial
	}
	return Full
}

// Gaps describes the actions that this machine cannot prevent although the sandbox should,
// one sentence each.
func (s *Sandbox) Gaps() []string {
	e := s.o.Enforcement()
	if e.Profile {
		return []string{"macOS holds programs of a task by a profile of sandbox-exec, which coven has not run with yet"}
	}
	if e.ABI == 0 {
		return []string{"the kernel has no Landlock: programs can change and read whatever you can"}
	}
	var gaps []string
	if e.ABI < abiTruncate {
		gaps = append(gaps, "programs of a task can empty files outside their worktree (Linux 6.2 prevents it)")
	}
	if e.ABI < abiScope {
		gaps = append(gaps, "programs of a task can signal your other processes and connect to abstract sockets (Linux 6.12 prevents it)")
	}
	if !e.Covers {
		gaps = append(gaps, "user namespaces are not available: hidden sockets can be used, modes and times of your files can be changed, your other terminals can be read and written, names of hidden files can be listed, and files that appear beside hidden ones cannot be read")
	}
	switch {
	case e.ABI < abiSockets && e.Covers:
		gaps = append(gaps, "programs of a task can connect to sockets in the file system of other users, and to those of yours that appear while they run, except where coven hides them")
	case e.ABI < abiSockets:
		gaps = append(gaps, "programs of a task can connect to sockets in the file system")
	}
	return gaps
}
