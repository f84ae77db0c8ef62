package process

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// The profile for macOS enforces the same limits for writing, hiding and signalling. Paths cannot inject
// rules, and links in them are resolved.
func TestProfile(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	must(0, errors.Join(os.Mkdir(filepath.Join(dir, "work"), 0o700), os.Mkdir(filepath.Join(dir, "shown"), 0o700), os.Symlink("work", filepath.Join(dir, "link"))))
	l := must((&Boundary{
		Write: []string{"/work/W", `/odd") (allow default) "\dir`, filepath.Join(dir, "link")},
		Hide:  []string{"/home/me/.ssh", "/x\ny"}, Partial: map[string][]string{dir: {filepath.Join(dir, "shown"), "/elsewhere", filepath.Join(dir, "missing")}},
	}).limits(mode{}))
	want := profileBegin + `(allow file-write* (subpath "/work/W"))
(allow file-write* (subpath "/odd\") (allow default) \"\\dir"))
(allow file-write* (subpath "` + dir + `/work"))
(deny file-read-data (subpath "` + dir + `"))
(allow file-read-data (subpath "` + dir + `/shown"))
(allow file-read-data (subpath "` + dir + `/work"))
(deny file-read* file-write* network-outbound (subpath "/home/me/.ssh"))
(deny file-read* file-write* network-outbound (subpath "/x\ny"))
`
	if got := l.profile(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	argv := l.profiled("/bin/sh", []string{"sh", "-c", "true"})
	if !slices.Equal(argv, []string{"/usr/bin/sandbox-exec", "-p", want, "/bin/sh", "-c", "true"}) {
		t.Errorf("%q", argv)
	}
}
