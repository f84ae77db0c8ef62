// Package git reads repositories and runs the git program for package worktree, its only importer. Refs and
// objects are read in process if possible (see Store).
//
// Rules:
//   - git is run with an argument list, never through a shell, and only -z or
//     single-line plumbing output is read.
//   - The git directory is always given. Except for Discover, nothing is looked up
//     from a working directory, because an agent controls the files in its worktree,
//     and a git directory can name programs to run.
//   - Every run has neutral settings (see environ): no hooks, no file system monitor,
//     no signing, no background maintenance, no recursion into submodules, no
//     replaced objects, literal pathspecs.
//   - Every failure of the program is an *Error.
//   - A child runs in its own process group, so that Ctrl-C does not interrupt a
//     checkout. When the context is canceled, the child gets TERM, on which git
//     removes its lock files. A child that blocks on a named pipe also gets TERM.
package git

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// A Setting is one configuration value, as in `git -c Key=Value`.
type Setting struct{ Key, Value string }

// A Repo selects the parts of a repository that git uses. It is a value: copy it and change the copy.
type Repo struct {
	Dir       string    // the git directory
	WorkTree  string    // top of the checkout, and git's working directory
	Index     string    // the index file, or empty for the index of Dir
	ObjectDir string    // the object directory, or empty for the one of Dir
	Settings  []Setting // override the neutral ones
	Env       []string  // KEY=VALUE, overrides coven's environment
	// Hold is a locked file that every child inherits. If coven is killed, the lock lasts until the last
	// child has ended.
	Hold *os.File
	// Write lists the only directories in which git, and the filters that it runs, can change files, so that a
	// program that replaces a directory by a link cannot make git write elsewhere. The directories must exist. Nil
	// means all, as on a machine without Landlock. Stream ignores it.
	Write []string
	// ListTimeout limits commands that read ignore rules, which an agent can write. Zero means 10 minutes.
	ListTimeout time.Duration
	// Network is set for exchanges with remotes: then cancellation also stops the programs that git runs, such as ssh, which would keep git's output open.
	Network bool
	// Store reads refs and objects of the repository in process. It is nil if git reads everything.
	Store *Store
}

// Run runs git and discards its output.
func (r Repo) Run(ctx context.Context, args ...string) error {
	_, err := r.Feed(ctx, nil, args...)
	return err
}

// Output runs git and returns its standard output.
func (r Repo) Output(ctx context.Context, args ...string) ([]byte, error) {
	return r.Feed(ctx, nil, args...)
}

// Line runs git and returns its output without the final line feed.
func (r Repo) Line(ctx context.Context, args ...string) (string, error) {
	out, err := r.Feed(ctx, nil, args...)
	return strings.TrimSuffix(string(out), "\n"), err
}

// Fields runs git and returns its NUL-terminated output items.
func (r Repo) Fields(ctx context.Context, args ...string) ([]string, error) {
	out, err := r.Feed(ctx, nil, args...)
	return Split(out), err
}

// Feed runs git with the given standard input. It returns the output even if git fails.
func (r Repo) Feed(ctx context.Context, stdin []byte, args ...string) (out []byte, err error) {
	for range objectTries {
		if out, err = r.feed(ctx, bytes.NewReader(stdin), args); !lostDirectory(err) {
			break
		}
	}
	return out, err
}

// objectTries is the number of attempts to write objects while another git process, for example a garbage
// collection, removes empty object directories.
const objectTries = 5

func lostDirectory(err error) bool {
	failed, ok := errors.AsType[*Error](err)
	return ok && strings.Contains(failed.Stderr, "unable to create temporary file: No such file or directory")
}

func (r Repo) feed(ctx context.Context, stdin io.Reader, args []string) ([]byte, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	cmd := r.command(ctx, args)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &stdout, &stderr
	if args[0] == "ls-files" || args[0] == "check-ignore" {
		limit := cmp.Or(r.ListTimeout, 10*time.Minute)
		defer time.AfterFunc(limit, func() { cancel(&ListTimeoutError{cmd.Dir, limit}) }).Stop()
	}
	err := r.run(cmd, cancel)
	return stdout.Bytes(), failure(ctx, args, stderr.String(), err)
}

// Stream runs git with the given standard input and passes its output to read.
func (r Repo) Stream(ctx context.Context, stdin []byte, read func(io.Reader) error, args ...string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	cmd := r.command(ctx, args)
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(stdin), &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return failure(ctx, args, "", err)
	}
	if err := cmd.Start(); err != nil {
		return failure(ctx, args, "", err)
	}
	defer watchForPipes(cmd, cancel)()
	readErr := read(stdout)
	if readErr != nil {
		cancel(nil)
	}
	waitErr := cmd.Wait()
	if readErr != nil {
		return readErr
	}
	return failure(ctx, args, stderr.String(), waitErr)
}

// Split splits NUL-terminated items.
func Split(out []byte) []string {
	text := strings.TrimSuffix(string(out), "\x00")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\x00")
}

// Join is the inverse of Split.
func Join(items []string) []byte {
	var out bytes.Buffer
	for _, item := range items {
		out.WriteString(item)
		out.WriteByte(0)
	}
	return out.Bytes()
}

func (r Repo) command(ctx context.Context, args []string) *exec.Cmd {
	full := []string{"--git-dir=" + r.Dir}
	if r.WorkTree != "" {
		full = append(full, "--work-tree="+r.WorkTree)
	}
	cmd := exec.CommandContext(ctx, "git", append(full, args...)...)
	cmd.Dir = r.WorkTree
	if cmd.Dir == "" {
		cmd.Dir = r.Dir
	}
	cmd.Env = r.environ()
	if r.Hold != nil {
		cmd.ExtraFiles = []*os.File{r.Hold}
	}
	ownProcessGroup(cmd)
	if r.Network {
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	}
	return cmd
}

// ownProcessGroup makes a child run in its own process group, and makes cancellation send TERM.
func ownProcessGroup(cmd *exec.Cmd) *exec.Cmd {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}
