package process

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/coven-run/coven/internal/process/reads"
)

// The list contains each file in the scope that a program read or executed, with its hash, by whatever path.
func TestReads(t *testing.T) {
	y := newYard(t)
	l := launcher(t, PIDNamespace)
	write := func(path, text string, mode os.FileMode) string {
		must(0, os.MkdirAll(filepath.Dir(path), 0o700))
		must(0, os.WriteFile(path, []byte(text), mode))
		return path
	}
	other := func(name string) string { return write(filepath.Join(y.other, name), name, 0o600) }
	write(y.other+"/plain", "plain", 0o600)
	write(y.other+"/tool", "#!/bin/sh\ncat plain\n", 0o700)
	must(0, os.Symlink(y.other, y.write+"/linked"))
	must(0, os.Mkdir(y.write+"/bound", 0o700))
	bound := filepath.Dir(write(y.root+"/deps/dep", "dep", 0o600))
	for _, test := range []struct{ script, want string }{
		{"true", ""},
		{"cat " + other("absolute"), "absolute"},
		{"cat ../other/../other/" + filepath.Base(other("relative")), "relative"},
		{"cat linked/" + filepath.Base(other("link")), "link"},
		{"cd ../other && ./tool", "plain tool"},
		{"cd / && (cd " + y.other + " && exec setsid sh -c 'cat " + filepath.Base(other("grandchild")) + "')", "grandchild"},
		{"cat '" + other("two\nlines") + "'", `two\nlines`},
		{"python3 -c 'import os; d = os.open(\"" + y.other + "\", os.O_DIRECTORY); os.open(\"" + filepath.Base(other("at")) + "\", os.O_RDONLY, dir_fd=d)'", "at"},
		{"ls " + y.other + "; stat " + y.other + "/at; cat " + y.other + "/missing; cat " + y.other, ""},
		{"cat bound/dep", "dep"},
		{"cat " + y.secret + "/key", ""},
		{"echo x >own && cat own", ""},
		{"cat " + write(y.root+"/plain/sub/unwatched", "x", 0o600), ""},
	} {
		var list bytes.Buffer
		b := y.boundary()
		b.Link = map[string]string{y.write + "/bound": bound}
		b.Reads = &Reads{To: &list, Scope: reads.Scope{
			In: []string{y.root}, Except: []string{y.write, y.root + "/plain"}, Bound: b.Link,
		}}
		exit, out, err := l.Run(t.Context(), Spec{Argv: shell(test.script), Dir: y.write, Env: []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}, Boundary: b})
		if err != nil {
			t.Fatalf("%s: %v, %s", test.script, err, out)
		}
		var names []string
		for line := range strings.Lines(list.String()) {
			sum, path, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
			names = append(names, filepath.Base(path))
			raw, err := os.ReadFile(strings.ReplaceAll(path, `\n`, "\n"))
			if want := sha256.Sum256(raw); err != nil || strings.TrimPrefix(sum, `\`) != hex.EncodeToString(want[:]) {
				t.Errorf("%s: %q, %v", test.script, line, err)
			}
		}
		if got := strings.Join(names, " "); got != test.want {
			t.Errorf("%s: read %q, not %q (%v: %s)", test.script, got, test.want, exit, out)
		}
		check := exec.Command("sha256sum", "--check", "--quiet")
		if check.Stdin = bytes.NewReader(list.Bytes()); test.want != "" {
			if out, err := check.CombinedOutput(); err != nil {
				t.Errorf("%s: %v, %s", test.script, err, out)
			}
		}
	}
}

// Inputs are recorded only if the record is complete.
func TestInputs(t *testing.T) {
	y := newYard(t)
	l := launcher(t, PIDNamespace)
	file := filepath.Join(y.write, "file")
	must(0, os.WriteFile(file, []byte("1"), 0o600))
	run := func(argv []string, input []byte, record *Reads) string {
		b := y.boundary()
		b.Reads = record
		exit, out, err := l.Run(t.Context(), Spec{Argv: argv, Dir: y.write, Env: []string{"PATH=" + os.Getenv("PATH")}, Boundary: b, Input: input})
		if err != nil || !exit.OK() {
			t.Fatal(argv, exit, err, string(out))
		}
		return strings.TrimSpace(string(out))
	}
	inputs := func(script string) []byte {
		var list bytes.Buffer
		run(shell(script), nil, &Reads{To: &list, Scope: reads.Scope{Inputs: &reads.Inputs{Dir: y.write}}})
		_, inputs := reads.Split(list.Bytes())
		return inputs
	}
	must(0, os.WriteFile(y.write+"/target", []byte("1"), 0o600))
	must(0, os.Symlink("target", y.write+"/link"))
	must(0, os.Mkdir(y.write+"/dir", 0o700))
	must(0, os.WriteFile(y.write+"/dir/a", nil, 0o600))
	complete := inputs("cat file; test -e missing; cat link; ls dir; true")
	for _, change := range []struct {
		name, want string
		do, undo   func()
	}{
		{"nothing", "", func() {}, func() {}},
		{"contents", file, func() { must(0, os.WriteFile(file, []byte("2"), 0o600)) }, func() { must(0, os.WriteFile(file, []byte("1"), 0o600)) }},
		{"a missing file", y.write + "/missing", func() { must(0, os.WriteFile(y.write+"/missing", nil, 0o600)) }, func() { must(0, os.Remove(y.write+"/missing")) }},
		{"the target of a link", y.write + "/link", func() { must(0, os.WriteFile(y.write+"/target", []byte("2"), 0o600)) }, func() { must(0, os.WriteFile(y.write+"/target", []byte("1"), 0o600)) }},
		{"a name in a directory", y.write + "/dir", func() { must(0, os.Rename(y.write+"/dir/a", y.write+"/dir/b")) }, func() { must(0, os.Rename(y.write+"/dir/b", y.write+"/dir/a")) }},
		{"a directory instead of a file", y.write + "/dir", func() { must(0, os.Remove(y.write+"/dir/a")); must(0, os.Mkdir(y.write+"/dir/a", 0o700)) }, func() { must(0, os.Remove(y.write+"/dir/a")); must(0, os.WriteFile(y.write+"/dir/a", nil, 0o600)) }},
		{"a pipe", file, func() { must(0, os.Remove(file)); must(0, unix.Mkfifo(file, 0o600)) }, func() { must(0, os.Remove(file)); must(0, os.WriteFile(file, []byte("1"), 0o600)) }},
	} {
		change.do()
		if got := run(l.Compare(), complete, nil); got != change.want {
			t.Errorf("%s: %q is different, not %q", change.name, got, change.want)
		}
		change.undo()
	}
	large := filepath.Join(y.write, "large")
	must(0, os.WriteFile(large, nil, 0o600))
	must(0, os.Truncate(large, 600<<20))
	for name, script := range map[string]string{
		"io_uring":         "python3 -c 'import ctypes; ctypes.CDLL(None).syscall(425, 1, 0)'",
		"too many paths":   "python3 -c 'import os\nfor i in range(6000): os.path.exists(\"/\" + \"x/\" * 1500 + str(i))'",
		"too large a file": "head -c 1 large",
	} {
		if got := inputs(script); got != nil {
			t.Errorf("%s: inputs are recorded", name)
		}
	}
}

// BenchmarkReads compares a program that opens 10,000 files with and without a record.
func BenchmarkReads(b *testing.B) {
	dir := b.TempDir()
	for i := range 10_000 {
		must(0, os.WriteFile(fmt.Sprint(dir, "/", i), nil, 0o600))
	}
	for name, record := range map[string]*Reads{"bare": nil, "recorded": {To: &bytes.Buffer{}, Scope: reads.Scope{In: []string{dir}}}} {
		b.Run(name, func(b *testing.B) {
			l := launcher(b, PIDNamespace)
			for b.Loop() {
				exit, out, err := l.Run(b.Context(), Spec{
					Argv:     []string{"python3", "-c", "import os\nfor i in range(10000): os.close(os.open('" + dir + "/' + str(i), os.O_RDONLY))"},
					Env:      []string{"PATH=" + os.Getenv("PATH")},
					Boundary: &Boundary{Write: []string{b.TempDir()}, Reads: record},
				})
				if err != nil || !exit.OK() {
					b.Fatal(exit, err, string(out))
				}
			}
		})
	}
}
