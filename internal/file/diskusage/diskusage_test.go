package diskusage

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func of(t *testing.T, m *Meter, path string, except ...string) int64 {
	t.Helper()
	n, err := m.Of(t.Context(), path, except...)
	must(t, err)
	return n
}

// tree creates a directory with files, links and a pipe. big is outside of it.
func tree(t *testing.T) (dir, big string) {
	t.Helper()
	top := t.TempDir()
	dir, big = filepath.Join(top, "dir"), filepath.Join(top, "big")
	must(t, os.MkdirAll(filepath.Join(dir, "a", "b"), 0o700))
	must(t, os.Mkdir(big, 0o700))
	must(t, os.WriteFile(filepath.Join(big, "file"), make([]byte, 3<<20), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "a", "one"), make([]byte, 100<<10), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "a", "b", "two"), make([]byte, 200<<10), 0o600))
	must(t, os.Link(filepath.Join(dir, "a", "one"), filepath.Join(dir, "a", "same")))
	must(t, os.Symlink(big, filepath.Join(dir, "link")))
	must(t, os.Symlink(filepath.Join(big, "file"), filepath.Join(dir, "a", "file")))
	must(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	return dir, big
}

// A Meter reports the same size as du.
func TestSameAsDu(t *testing.T) {
	dir, _ := tree(t)
	out, err := exec.CommandContext(t.Context(), "du", "-skx", dir).Output()
	must(t, err)
	want, err := strconv.ParseInt(strings.Fields(string(out))[0], 10, 64)
	must(t, err)
	if got := of(t, &Meter{}, dir); got != want<<10 {
		t.Errorf("%d, du finds %d", got, want<<10)
	}
}

// Links are not followed, even if the measured path itself is a link.
func TestLinksAreNotFollowed(t *testing.T) {
	dir, big := tree(t)
	linked := filepath.Join(filepath.Dir(dir), "linked")
	must(t, os.Symlink(big, linked))
	var m Meter
	if got := of(t, &m, linked); got >= 1<<20 || m.Unread != 0 {
		t.Errorf("a link: %d, %d unread", got, m.Unread)
	}
	must(t, os.Remove(filepath.Join(dir, "a", "b", "two")))
	if got := of(t, &m, dir); got >= 1<<20 || m.Unread != 0 {
		t.Errorf("a tree with links: %d, %d unread", got, m.Unread)
	}
}

// Only directories are opened: a file that replaced one neither blocks nor counts.
func TestOnlyDirectoriesAreOpened(t *testing.T) {
	dir, _ := tree(t)
	for name, want := range map[string]error{"pipe": syscall.ENOTDIR, "none": syscall.ENOENT} {
		if fd, err := openDir(unix.AT_FDCWD, filepath.Join(dir, name)); !errors.Is(err, want) {
			t.Errorf("%s: %d, %v", name, fd, err)
		}
	}
	if _, err := openDir(unix.AT_FDCWD, filepath.Join(dir, "link")); err == nil {
		t.Error("a link was opened")
	}
	var m Meter
	if got := m.dir(t.Context(), unix.AT_FDCWD, filepath.Join(dir, "pipe"), 0, 0, nil); got != 0 || m.Unread != 0 {
		t.Errorf("%d, %d unread", got, m.Unread)
	}
}

// A Meter counts a file with several names once, even across measurements, and omits the
// excepted entries.
func TestCountedOnce(t *testing.T) {
	dir, _ := tree(t)
	var m Meter
	first := of(t, &m, filepath.Join(dir, "a", "one"))
	if first < 100<<10 {
		t.Errorf("%d", first)
	}
	if again := of(t, &m, filepath.Join(dir, "a", "same")); again != 0 {
		t.Errorf("again: %d", again)
	}
	whole, without := of(t, &Meter{}, dir), of(t, &Meter{}, dir, "a")
	if whole-without < 300<<10 || without >= 100<<10 {
		t.Errorf("%d, without a %d", whole, without)
	}
	if gone := of(t, &m, filepath.Join(dir, "none")); gone != 0 || m.Unread != 0 {
		t.Errorf("gone: %d, %d unread", gone, m.Unread)
	}
}

// Directories that are too deep count as unread; the levels above are measured.
func TestTooDeep(t *testing.T) {
	dir := t.TempDir()
	at := dir
	for range maxDepth + 5 {
		at = filepath.Join(at, "d")
	}
	must(t, os.MkdirAll(at, 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "file"), make([]byte, 100<<10), 0o600))
	var m Meter
	if got := of(t, &m, dir); got < 100<<10 || m.Unread != 1 {
		t.Errorf("%d, %d unread", got, m.Unread)
	}
}

// Files that appear and vanish during a measurement do no harm.
func TestVanishing(t *testing.T) {
	dir := t.TempDir()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		var err error
		for n := 0; ctx.Err() == nil && err == nil; n++ {
			at := filepath.Join(dir, strconv.Itoa(n%50))
			switch n / 50 % 3 {
			case 0:
				err = os.MkdirAll(filepath.Join(at, "x", "y"), 0o700)
			case 1:
				err = os.RemoveAll(at)
			default:
				err = errors.Join(os.Symlink("/", at), os.Remove(at))
			}
		}
		ended <- err
	}()
	var m Meter
	for range 200 {
		if got := of(t, &m, dir); got > 10<<20 {
			t.Fatalf("%d", got)
		}
	}
	stop()
	must(t, <-ended)
	if m.Unread != 0 {
		t.Errorf("%d unread", m.Unread)
	}
}

// Canceling the context ends a measurement.
func TestCanceled(t *testing.T) {
	dir, _ := tree(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (&Meter{}).Of(ctx, dir); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
