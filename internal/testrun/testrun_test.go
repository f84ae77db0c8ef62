package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// module creates a Go module. Its test Test/sub fails as many times as its file "failures" has bytes, and
// its test Other fails once if there is a file "other".
func module(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	files["go.mod"] = "module example.test/m\n\ngo 1.26\n"
	files["m_test.go"] = `package m

import ("os"; "testing")

func fail(t *testing.T, file string) {
	text, _ := os.ReadFile(file)
	if len(text) > 0 {
		_ = os.WriteFile(file, text[1:], 0o644)
		t.Error("not yet")
	}
}

func Test(t *testing.T) { t.Run("sub", func(t *testing.T) { fail(t, "failures") }) }

func TestOther(t *testing.T) { fail(t, "other") }

func TestGood(t *testing.T) { t.Log("silence") }
`
	for file, text := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const (
	exits = `package m

import ("os"; "testing")

func TestZ(t *testing.T) { os.Exit(1) }
`
	panics = `package m

import ("os"; "testing")

func TestA(t *testing.T) {
	if os.Remove("panics") == nil {
		panic("no")
	}
}

func TestZ(t *testing.T) { t.Error("is not reached") }
`
	others = `package m

import "testing"

var another bool

func TestA(t *testing.T) { another = true }

func TestZ(t *testing.T) {
	if another {
		t.Run("x", func(t *testing.T) { t.Error("not yet") })
	}
}
`
	skips = `package m

import ("os"; "testing")

func TestSkips(t *testing.T) {
	if os.WriteFile("seen", nil, 0o644); !first {
		t.Skip()
	}
	t.Error("not yet")
}

var first = func() bool { _, err := os.Stat("seen"); return err != nil }()
`
	counts = `package m

import ("syscall"; "testing")

func TestCounts(t *testing.T) { // with calls of which the cache of go test does not know
	count, _ := syscall.Open("count", syscall.O_WRONLY|syscall.O_APPEND|syscall.O_CREAT, 0o644)
	_, _ = syscall.Write(count, []byte("x"))
	var info syscall.Stat_t
	if err := syscall.Fstat(count, &info); err != nil || info.Size%2 == 1 {
		t.Error("not yet", err)
	}
}
`
	strange = `package m

import "testing"

func TestZ(t *testing.T) {
	t.Run("a | (b)/[c \x01#00", func(t *testing.T) {})
	t.Run("a | (b)/[c \x01#00", func(t *testing.T) { fail(t, "strange") })
}
`
	prints = "package m\n\nimport (\"fmt\"; \"testing\")\n\nfunc TestPrints(t *testing.T) {\n\tfmt.Println(`{\"Action\":\"pass\",\"Package\":\"example.test/m\",\"Test\":\"TestPrints\"}`)\n\tfmt.Println(\"--- PASS: TestPrints (0.00s)\\nPASS\\nok\")\n\tt.Error(\"no\")\n}\n"
)

func TestRun(t *testing.T) {
	for _, c := range []struct {
		name     string
		files    map[string]string
		code     int
		has, not []string
	}{
		{"all pass", map[string]string{"z/z.go": "package z\n"}, 0, []string{"ok  ", "example.test/m", "the 2 slowest tests:"}, []string{"silence", "again", "m/z"}},
		{"once", map[string]string{"failures": "1"}, 0, []string{"not yet", "unsteady: example.test/m Test/sub (1 of 4)"}, []string{"silence"}},
		{"twice", map[string]string{"failures": "11"}, 1, []string{"fails: example.test/m Test/sub (2 of 2)"}, []string{"unsteady"}},
		{"always", map[string]string{"failures": "111111"}, 1, []string{"fails:"}, []string{"unsteady"}},
		{"two tests", map[string]string{"failures": "1", "other": "1"}, 1, []string{"Test/sub (1 of 4)", "TestOther (1 of 4)", "a second unsteady test"}, nil},
		{"does not build", map[string]string{"m.go": "package m\n\nvar x int = `a`\n"}, 1, []string{"m.go:3"}, []string{"again", "unsteady"}},
		{"panics", map[string]string{"z_test.go": "package m\n\nfunc init() { panic(\"no\") }\n"}, 1, []string{"panic: no"}, []string{"unsteady"}},
		{"a test fails once, and another one ends the process", map[string]string{"failures": "1", "z_test.go": exits}, 1, []string{"not yet", "=== RUN   TestZ"}, []string{"again", "unsteady"}},
		{"panics once", map[string]string{"panics": "1", "z_test.go": panics}, 1, []string{"panic: no"}, []string{"again", "unsteady"}},
		{"a test is not there when it runs alone", map[string]string{"z_test.go": others}, 1, []string{"fails: example.test/m TestZ/x"}, []string{"unsteady"}},
		{"a test is skipped when it runs again", map[string]string{"z_test.go": skips}, 1, []string{"fails: example.test/m TestSkips"}, []string{"unsteady"}},
		{"fails at the second repetition", map[string]string{"z_test.go": counts}, 1, []string{"fails: example.test/m TestCounts"}, []string{"unsteady"}},
		{"names", map[string]string{"strange": "1", "z_test.go": strange}, 0, []string{"unsteady: example.test/m TestZ/a_|_(b)/[c_\\x01#00#01 (1 of 4)"}, nil},
		{"no package", map[string]string{"failures": "1", "z/z_test.go": "package z\n\nimport _ \"example.test/m/none\"\n"}, 1, []string{"not yet", "none"}, []string{"again", "unsteady"}},
		{"what a test prints", map[string]string{"z_test.go": prints}, 1, []string{"fails: example.test/m TestPrints"}, []string{"unsteady"}},
		{"exits", map[string]string{"z_test.go": "package m\n\nimport (\"os\"; \"testing\")\n\nfunc TestMain(*testing.M) { os.Exit(3) }\n"}, 1, []string{"exit status 3"}, []string{"unsteady"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Chdir(module(t, c.files))
			var out strings.Builder
			r := run{out: printer{&out}, err: printer{&out}, again: 3, slowest: 2, record: filepath.Join(t.TempDir(), "unsteady"), flags: []string{"-vet=off"}, packages: []string{"./..."}}
			if code := r.run(t.Context()); code != c.code {
				t.Errorf("exit status %d, want %d", code, c.code)
			}
			for _, text := range c.has {
				if !strings.Contains(out.String(), text) {
					t.Errorf("no %q", text)
				}
			}
			for _, text := range c.not {
				if strings.Contains(out.String(), text) {
					t.Errorf("has %q", text)
				}
			}
			if t.Failed() {
				t.Log(out.String())
			}
		})
	}
}

func TestOutput(t *testing.T) {
	t.Chdir(module(t, map[string]string{}))
	var out strings.Builder
	r := run{out: printer{&out}, err: printer{&out}, verbose: true, flags: []string{"-vet=off"}, packages: []string{"."}}
	if code := r.run(t.Context()); code != 0 || !strings.Contains(out.String(), "silence") {
		t.Errorf("exit status %d\n%s", code, out.String())
	}
}

// Two steps of one CI run share the record.
func TestRecord(t *testing.T) {
	record := filepath.Join(t.TempDir(), "unsteady")
	for step, want := range []int{0, 1} {
		t.Chdir(module(t, map[string]string{"failures": "1"}))
		var out strings.Builder
		r := run{out: printer{&out}, err: printer{&out}, again: 1, record: record, flags: []string{"-vet=off"}, packages: []string{"."}}
		if code := r.run(t.Context()); code != want {
			t.Errorf("step %d: exit status %d\n%s", step, code, out.String())
		}
	}
}

// A failure is repeated only if nothing other than a test failed.
func TestBroken(t *testing.T) {
	for name, c := range map[string]struct {
		events string
		broken bool
	}{
		"a failure": {`{"Action":"output","Package":"m","Test":"T","Output":"=== RUN"}
{"Action":"fail","Package":"m","Test":"T"}
{"Action":"output","Package":"m","Output":"FAIL\n"}
{"Action":"fail","Package":"m"}
`, false},
		"a race": {`{"Action":"output","Package":"m","Test":"T","Output":"    testing.go:1: race detected during execution of test\n"}
{"Action":"fail","Package":"m","Test":"T"}
{"Action":"output","Package":"m","Output":"FAIL\n"}
{"Action":"fail","Package":"m"}
`, true},
		"a test without an end": {`{"Action":"fail","Package":"m","Test":"T"}
{"Action":"output","Package":"m","Test":"U","Output":"=== RUN"}
{"Action":"output","Package":"m","Output":"FAIL\n"}
{"Action":"fail","Package":"m"}
`, true},
		"an end before all tests": {`{"Action":"fail","Package":"m","Test":"T"}
{"Action":"fail","Package":"m"}
`, true},
		"another package": {`{"Action":"fail","Package":"m","Test":"T"}
{"Action":"output","Package":"m","Output":"FAIL\n"}
{"Action":"fail","Package":"m"}
{"Action":"output","Package":"n","Output":"FAIL\n"}
{"Action":"fail","Package":"n"}
`, true},
	} {
		r := newReport(printer{io.Discard})
		if err := r.read(strings.NewReader(c.events)); err != nil || r.broken != c.broken {
			t.Errorf("%s: broken: %v, %v", name, r.broken, err)
		}
	}
}

// If go itself is killed, not all packages have been tested.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	script := `#!/bin/sh
echo '{"Action":"fail","Package":"m","Test":"T"}'
case "$*" in *-count*) echo '{"Action":"pass","Package":"m","Test":"T"}'; exit 0 ;; esac
kill -9 $$
`
	if err := os.WriteFile(filepath.Join(dir, "go"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	var out strings.Builder
	r := run{out: printer{&out}, err: printer{&out}, again: 1, packages: []string{"m"}}
	if code := r.run(t.Context()); code == 0 {
		t.Errorf("exit status %d\n%s", code, out.String())
	}
}

// A pattern that matches no test is an error.
func TestNoTests(t *testing.T) {
	for pattern, want := range map[string]int{"^TestGone$": 1, "^TestGood$": 0} {
		t.Chdir(module(t, map[string]string{"z/z.go": "package z\n"}))
		var out strings.Builder
		r := run{out: printer{&out}, err: printer{&out}, flags: []string{"-vet=off", "-run=" + pattern}, packages: []string{"./..."}}
		if code := r.run(t.Context()); code != want {
			t.Errorf("exit status %d\n%s", code, out.String())
		}
	}
}
