package object

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/go-git/go-billy/v5"
)

// go-git can only read regular files of the git directory, and cannot write any.
func TestGitFiles(t *testing.T) {
	dir := t.TempDir()
	files := gitFiles{filepath.Join(dir, "git")}
	prepare := exec.Command("sh", "-c", "mkdir -p git/refs; printf value > git/refs/one; touch outside; mkfifo git/pipe")
	prepare.Dir = dir
	if err := prepare.Run(); err != nil {
		t.Fatal(err)
	}

	if file, err := files.Open("refs/one"); err != nil {
		t.Error(err)
	} else if text, err := io.ReadAll(file); err != nil || string(text) != "value" || file.Close() != nil {
		t.Errorf("read %q, %v", text, err)
	}
	for name, want := range map[string]error{"pipe": fs.ErrInvalid, "refs": fs.ErrInvalid, "../outside": billy.ErrCrossedBoundary, "refs/../../outside": billy.ErrCrossedBoundary, "none": fs.ErrNotExist} {
		if _, err := files.Open(name); !errors.Is(err, want) { // opening the pipe would block forever
			t.Errorf("open %s: %v", name, err)
		}
	}
	if _, err := files.OpenFile("refs/one", os.O_RDWR, 0); !errors.Is(err, billy.ErrReadOnly) {
		t.Errorf("open to write: %v", err)
	}
	inner, err := files.Chroot("refs")
	if err != nil {
		t.Fatal(err)
	}
	if infos, err := inner.ReadDir("."); err != nil || len(infos) != 1 || infos[0].Name() != "one" || infos[0].Size() != 5 {
		t.Errorf("refs has %v, %v", infos, err)
	}
	if _, err := inner.Stat("../pipe"); !errors.Is(err, billy.ErrCrossedBoundary) {
		t.Errorf("a directory in it leads out: %v", err)
	}
}
