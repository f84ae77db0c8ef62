package land

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
)

// A landing waits for git processes of the user that run in a checkout and may change it: not for those that only read,
// those in the worktrees of tasks, and coven's own.
func TestGitsIn(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there is no /proc")
	}
	root, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	sub, task, other := filepath.Join(root, "sub"), filepath.Join(root, ".coven", "worktrees", "t"), t.TempDir()
	must(t, os.MkdirAll(sub, 0o755))
	must(t, os.MkdirAll(task, 0o755))
	for _, dir := range []string{root, task} {
		must(t, exec.Command("git", "init", "-q", dir).Run())
	}
	gitDir := filepath.Join(root, ".git")
	attributes := []string{"check-attr", "--stdin", "text"}
	for what, c := range map[string]struct {
		dir  string
		args []string
		want bool
	}{
		"in the checkout":     {root, attributes, true},
		"in a subdirectory":   {sub, append([]string{"-c", "a.b=c"}, attributes...), true},
		"from elsewhere":      {other, append([]string{"-C", root}, attributes...), true},
		"elsewhere":           {other, append([]string{"--git-dir", gitDir}, attributes...), false},
		"only reads":          {root, []string{"cat-file", "--batch"}, false},
		"in a task's own":     {task, attributes, false},
		"one that coven runs": {root, append([]string{"--git-dir=" + gitDir, "--work-tree=" + root}, attributes...), false},
	} {
		t.Run(what, func(t *testing.T) {
			pid, end := startGit(t, c.dir, c.args...)
			found := func() bool { return slices.Contains(gitsIn([]Checkout{{Path: root}}), pid) }
			if got := found(); got != c.want {
				t.Errorf("found: %v", got)
			}
			if end(); found() {
				t.Error("found after its end")
			}
		})
	}
	if left := awaitGits(t.Context(), []Checkout{{Path: root}}, nil); len(left) > 0 {
		t.Errorf("still running: %v", left)
	}
	pid, end := startGit(t, root, attributes...)
	defer end()
	if left := awaitGits(t.Context(), []Checkout{{Path: root}}, nil); !slices.Equal(left, []int{pid}) {
		t.Errorf("%v, want only %d to run longer than the wait", left, pid)
	}
	if left := awaitGits(t.Context(), []Checkout{{Path: root}}, []int{pid}); len(left) > 0 {
		t.Errorf("waited for an ignored process: %v", left)
	}
}

// startGit starts a git process that answers lines, and waits for its first answer.
func startGit(t *testing.T, dir string, args ...string) (pid int, end func()) {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	_, err = io.WriteString(in, "x\n")
	must(t, err)
	_, err = bufio.NewReader(out).ReadString('\n')
	must(t, err)
	return cmd.Process.Pid, func() {
		_ = in.Close()
		_ = cmd.Wait()
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestMain(m *testing.M) {
	home, err := os.MkdirTemp("", "coven-home-")
	if err != nil {
		panic(err)
	}
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME"} {
		_ = os.Setenv(name, home)
	}
	_ = os.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	code := m.Run()
	_ = os.RemoveAll(home)
	os.Exit(code)
}
