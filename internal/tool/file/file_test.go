package file_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/coven-run/coven/internal/tool/file"
)

// use calls a tool like the loop. The result begins with "error: " if the call failed.
func use(t *testing.T, root, name string, arguments map[string]any) string {
	t.Helper()
	in, err := json.Marshal(arguments)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range file.Tools(root) {
		if one.Name != name {
			continue
		}
		err := one.Check(in)
		text := ""
		if err == nil {
			text, err = one.Call(context.Background(), in)
		}
		if err != nil {
			return "error: " + err.Error()
		}
		return text
	}
	t.Fatal("no tool " + name)
	return ""
}

type in = map[string]any

func put(t *testing.T, root, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(root, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func content(t *testing.T, root, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, name)) //nolint:gosec // of the test
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func numbered(from, to int) string {
	var b strings.Builder
	for n := from; n <= to; n++ {
		b.WriteString("line\n")
	}
	return b.String()
}

// T-12: {path, startLine, endLine} is an inclusive range starting at 1, with line numbers.
func TestRead(t *testing.T) {
	root := t.TempDir()
	var b strings.Builder
	for n := range 200 {
		b.WriteString(strings.Repeat("x", n%3) + "\r\n")
	}
	put(t, root, "two hundred", b.String())
	put(t, root, "open", "a\nb")
	put(t, root, "empty", "")
	put(t, root, "binary", "a\x00b")
	put(t, root, "latin1", "caf\xe9")
	put(t, root, "large", strings.Repeat("x", 10<<20+1))
	put(t, root, "long", numbered(1, 2500))
	put(t, root, "wide", strings.Repeat(strings.Repeat("y", 100<<10)+"\n", 4))
	text := use(t, root, "read", in{"path": "two hundred", "startLine": 1, "endLine": 50})
	if lines := strings.Split(text, "\r\n"); len(lines) != 51 || lines[0] != "1\t" || lines[49] != "50\tx" || lines[50] != "" {
		t.Errorf("%d %q", len(lines), text)
	}
	for _, c := range []struct {
		arguments in
		want      string
	}{
		{in{"path": "open"}, "1\ta\n2\tb"},
		{in{"path": filepath.Join(root, "open"), "startLine": 2}, "2\tb"},
		{in{"path": "open", "endLine": 9}, "1\ta\n2\tb\n(the file ends at line 2)"},
		{in{"path": "open", "startLine": 3}, "error: startLine: the file has 2 lines"},
		{in{"path": "open", "startLine": 2, "endLine": 1}, "error: endLine: 1 is before line 2"},
		{in{"path": "open", "startLine": 0}, "error: wrong arguments: startLine: minimum: 0/1 is less than 1.000000"},
		{in{"path": 5}, `error: wrong arguments: path: type: 5 has type "integer", want "string"`},
		{in{"path": "empty"}, "(the file is empty)"},
		{in{"path": "binary"}, "error: path: binary is not a text file"},
		{in{"path": "latin1"}, "error: path: latin1 is not a text file"},
		{in{"path": "large"}, "error: path: large cannot be read: it is larger than 10485760 bytes"},
		{in{"path": "none"}, "error: path: none does not exist"},
		{in{"path": "."}, "error: path: . cannot be read: it is not a file"},
	} {
		if got := use(t, root, "read", c.arguments); got != c.want {
			t.Errorf("%v: %q, want %q", c.arguments, got, c.want)
		}
	}
	if got := use(t, root, "read", in{"path": "long"}); !strings.HasSuffix(got, "2000\tline\n\n(cut: continue with startLine 2001; the file has 2500 lines)") {
		t.Errorf("%q", got[len(got)-100:])
	}
	if got := use(t, root, "read", in{"path": "wide"}); len(got) > 257<<10 || !strings.HasSuffix(got, "(cut: continue with startLine 3; the file has 4 lines)") {
		t.Errorf("%d %q", len(got), got[len(got)-100:])
	}
}

func TestWrite(t *testing.T) {
	root := t.TempDir()
	if got := use(t, root, "write", in{"path": "a/b/c.txt", "content": "hello"}); got != "Wrote 5 bytes to a/b/c.txt." || content(t, root, "a/b/c.txt") != "hello" {
		t.Error(got)
	}
	if err := os.Chmod(filepath.Join(root, "a/b/c.txt"), 0o755); err != nil { //nolint:gosec // the test is about modes
		t.Fatal(err)
	}
	if got := use(t, root, "write", in{"path": filepath.Join(root, "a/b/c.txt"), "content": ""}); got != "Wrote 0 bytes to a/b/c.txt." || content(t, root, "a/b/c.txt") != "" {
		t.Error(got)
	}
	if info, err := os.Stat(filepath.Join(root, "a/b/c.txt")); err != nil || info.Mode() != 0o755 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	for path, want := range map[string]string{
		"a": "error: path: a cannot be written: is a directory", "a/b/c.txt/d": "error: path: the directory of a/b/c.txt/d cannot be made: file exists",
	} {
		if got := use(t, root, "write", in{"path": path, "content": "x"}); got != want {
			t.Errorf("%s: %q", path, got)
		}
	}
}

func TestEdit(t *testing.T) {
	root := t.TempDir()
	put(t, root, "f", "one\ntwo\none\n")
	put(t, root, "dos", "one\r\ntwo\r\n")
	for _, c := range []struct {
		file, from, to string
		all            bool
		want, then     string
	}{
		{"f", "one", "1", false, "error: oldText occurs 2 times in f; give more of what is around it, or set replaceAll", "one\ntwo\none\n"},
		{"f", "three", "3", false, "error: oldText does not occur in f; read the file again", "one\ntwo\none\n"},
		{"f", "two", "two", false, "error: oldText and newText are the same", "one\ntwo\none\n"},
		{"f", "", "x", false, `error: wrong arguments: oldText: minLength: "" contains 0 Unicode code points, fewer than 1`, "one\ntwo\none\n"},
		{"f", "two\none", "2", false, "Replaced 1 occurrence in f.", "one\n2\n"},
		{"f", "n", "m", true, "Replaced 1 occurrence in f.", "ome\n2\n"},
		{"dos", "one\ntwo", "1\n2", false, "Replaced 1 occurrence in dos.", "1\r\n2\r\n"},
		{"dos", "1\r\n", "one\r\n", false, "Replaced 1 occurrence in dos.", "one\r\n2\r\n"},
	} {
		got := use(t, root, "edit", in{"path": c.file, "oldText": c.from, "newText": c.to, "replaceAll": c.all})
		if got != c.want || content(t, root, c.file) != c.then {
			t.Errorf("%+v: %q, %q", c, got, content(t, root, c.file))
		}
	}
}

// No tool leaves the directory, blocks on a pipe, or replaces anything but a file.
func TestOutside(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	put(t, outside, "secret", "no")
	for name, to := range map[string]string{"link": filepath.Join(outside, "secret"), "dir": outside, "new": filepath.Join(outside, "made"), "up": "../" + filepath.Base(outside)} {
		if err := os.Symlink(to, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(root, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	put(t, root, "inside", "yes")
	if err := os.Symlink("inside", filepath.Join(root, "near")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"link", "dir/secret", "new", "up/secret", "pipe", "../x", outside + "/secret", "/etc/passwd", "a/../../x", "dir/sub/x"} {
		for _, got := range []string{
			use(t, root, "read", in{"path": path}), use(t, root, "write", in{"path": path, "content": "bad"}),
			use(t, root, "edit", in{"path": path, "oldText": "no", "newText": "bad"}),
		} {
			if !strings.HasPrefix(got, "error: path: ") {
				t.Errorf("%s: %q", path, got)
			}
		}
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) != 1 || content(t, outside, "secret") != "no" {
		t.Errorf("%v %v", entries, err)
	}
	if got := use(t, root, "write", in{"path": "near", "content": "still"}); got != "Wrote 5 bytes to near." || content(t, root, "inside") != "still" {
		t.Error(got)
	}
}
