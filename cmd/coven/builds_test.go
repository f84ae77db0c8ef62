package main

import (
	"archive/zip"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestBuildsOfUser runs the stories of real builds again as an ordinary user, whose sandbox needs a user
// namespace.
func TestBuildsOfUser(t *testing.T) {
	if os.Getenv("COVEN_BUILDS") == "" {
		t.Skip("make builds runs it (COVEN_BUILDS=1)")
	}
	if os.Geteuid() != 0 {
		t.Skip("TestLong runs as an ordinary user")
	}
	dir, err := shortTemp()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	self := filepath.Join(dir, "coven.test") // the other user may not be able to read this program
	program, err := os.ReadFile("/proc/self/exe")
	err = errors.Join(err, os.Chmod(dir, 0o777), os.WriteFile(self, program, 0o755), os.CopyFS(filepath.Join(dir, "testdata"), os.DirFS("testdata"))) //nolint:gosec // for the other user
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run", "^TestLong$/^builds", "-test.v")
	cmd.Dir = dir
	cmd.Env = []string{"PATH=/usr/local/go/bin:/usr/local/bin:/usr/bin:/bin", "TMPDIR=" + dir, "HOME=" + dir, "COVEN_LONG=1"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestLong/builds") {
		t.Errorf("%v: %s", err, out)
	}
}

// cmdModules implements the script command modules DIR PROXY: it creates the files of a Go module proxy in
// PROXY, for the modules in DIR/MODULE@VERSION.
func cmdModules(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 2, "modules DIR PROXY")
	from, to := ts.MkAbs(args[0]), ts.MkAbs(args[1])
	mods, err := filepath.Glob(filepath.Join(from, "*", "*@*"))
	ts.Check(err)
	for _, dir := range mods {
		module, err := filepath.Rel(from, dir)
		ts.Check(err)
		path, version, _ := strings.Cut(module, "@")
		at := filepath.Join(to, path, "@v", version)
		ts.Check(os.MkdirAll(filepath.Dir(at), 0o755))
		gomod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		ts.Check(err)
		ts.Check(os.WriteFile(at+".mod", gomod, 0o644))
		ts.Check(os.WriteFile(at+".info", []byte(`{"Version":"`+version+`","Time":"2026-01-01T00:00:00Z"}`), 0o644))
		ts.Check(zipModule(at+".zip", dir, module))
	}
}

// zipModule packs the files of a module in the format of a proxy.
func zipModule(file, dir, prefix string) error {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	z := zip.NewWriter(out)
	err = fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		w, err := z.Create(prefix + "/" + name)
		if err == nil {
			_, err = w.Write(content)
		}
		return err
	})
	return errors.Join(err, z.Close(), out.Close())
}

// cmdServe implements serve DIR VARIABLE: it serves the files of DIR on loopback, FILE.json also as FILE,
// and sets the variable to the address. FILE redirects to the URL in FILE.location.
func cmdServe(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 2, "serve DIR VARIABLE")
	dir := ts.MkAbs(args[0])
	files := http.FileServer(http.Dir(dir))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := filepath.Join(dir, filepath.Clean("/"+r.URL.Path))
		if to, err := os.ReadFile(name + ".location"); err == nil {
			http.Redirect(w, r, strings.TrimSpace(string(to)), http.StatusFound)
			return
		}
		file := name + ".json"
		if _, err := os.Stat(file); err == nil {
			http.ServeFile(w, r, file)
			return
		}
		files.ServeHTTP(w, r)
	}))
	ts.Defer(server.Close)
	ts.Setenv(args[1], server.URL)
}
