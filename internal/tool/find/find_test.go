package find_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/permission"
	"github.com/coven-run/coven/internal/search"
	"github.com/coven-run/coven/internal/tool"
	"github.com/coven-run/coven/internal/tool/find"
)

// tree creates a directory with files, and returns it with its tools. The index lists all files, as if git
// ignored none.
func tree(t testing.TB, files map[string]string) (string, func(name, arguments string) string) {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		write(t, filepath.Join(root, name), text)
	}
	listed := func(context.Context) (l search.Listing, err error) {
		err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				name, _ := filepath.Rel(root, path)
				l.Files = append(l.Files, name)
			}
			return err
		})
		return l, err
	}
	tools := find.Tools(find.Options{
		Root: root, Files: search.New(search.Options{Root: root, List: listed, Now: time.Now}),
		Check: func(needed permission.Name, path string) error {
			if !strings.HasPrefix(path, root+"/") || strings.HasPrefix(path, root+"/secret") {
				return errors.New(string(needed) + " is refused")
			}
			return nil
		},
	})
	return root, func(name, arguments string) string {
		one, _ := tool.Find(tools, name)
		if err := one.Check(json.RawMessage(arguments)); err != nil {
			return "✗ " + err.Error()
		}
		text, err := one.Call(context.Background(), json.RawMessage(arguments))
		if err != nil {
			return "✗ " + err.Error()
		}
		return text
	}
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// T-11: The answers of glob, grep and ls.
func TestAnswers(t *testing.T) {
	_, call := tree(t, map[string]string{
		"a.go": "package a\n\nfunc A() {}\nfunc B() {}\n// end\n", "src/b.go": "package b\r\nfunc C() {}\r\n", "src/deep/c.txt": "Func\n",
		"secret/key": "func hidden\n", "binary": "func\x00", "empty": "",
	})
	for _, c := range []struct{ name, arguments, want string }{
		{"glob", `{"pattern":"*.go"}`, "a.go\nsrc/b.go"},
		{"glob", `{"pattern":"*.go","path":"src"}`, "src/b.go"},
		{"glob", `{"pattern":"src/**"}`, "src/b.go\nsrc/deep/c.txt"},
		{"glob", `{"pattern":"*.rs"}`, "No files match."},
		{"glob", `{"pattern":"secret/*"}`, "No files match."},
		{"glob", `{"pattern":"[","path":"src"}`, `✗ pattern: invalid glob "["`},
		{"glob", `{"pattern":"{a,b}.{go,rs}"}`, "a.go\nsrc/b.go"},
		{"glob", `{"pattern":"` + strings.Repeat("{a,aa}", 30) + `"}`, "✗ pattern: the glob has more than 1000 combinations of the alternatives in its braces"},
		{"grep", `{"pattern":"x","glob":"` + strings.Repeat("{a,{b,c}}", 9) + `"}`, "✗ the glob has more than 1000 combinations of the alternatives in its braces"},
		{"glob", `{"pattern":"*","path":"nowhere"}`, "✗ path: nowhere does not exist"},
		{"glob", `{"pattern":"*","path":".."}`, "✗ path: .. is outside the worktree"},
		{"glob", `{}`, `✗ wrong arguments: required: missing properties: ["pattern"]`},
		{"grep", `{"pattern":"func"}`, "a.go:3:func A() {}\na.go:4:func B() {}\nsrc/b.go:2:func C() {}"},
		{"grep", `{"pattern":"^FUNC","ignoreCase":true,"path":"src"}`, "src/b.go:2:func C() {}\nsrc/deep/c.txt:1:Func"},
		{"grep", `{"pattern":"func","filesOnly":true}`, "a.go\nsrc/b.go"},
		{"grep", `{"pattern":"func","glob":"*.txt"}`, "No lines match."},
		{"grep", `{"pattern":"A\\(|C\\(","context":1}`, "a.go-2-\na.go:3:func A() {}\na.go-4-func B() {}\n--\nsrc/b.go-1-package b\nsrc/b.go:2:func C() {}"},
		{"grep", `{"pattern":"A\\(|B\\(","context":1,"path":"a.go"}`, "a.go-2-\na.go:3:func A() {}\na.go:4:func B() {}\na.go-5-// end"},
		{"grep", `{"pattern":"hidden"}`, "No lines match."},
		{"grep", `{"pattern":"("}`, "✗ invalid regular expression: error parsing regexp: missing closing ): `(`"},
		{"grep", `{"pattern":"a","context":99}`, "✗ wrong arguments: context: maximum: 99/1 is greater than 10.000000"},
		{"ls", `{}`, "a.go\t42\nbinary\t5\nempty\t0\nsrc/"},
		{"ls", `{"path":"src"}`, "b.go\t24\ndeep/"},
		{"ls", `{"path":"a.go"}`, "✗ path: a.go cannot be listed: it is not a directory"},
		{"ls", `{"path":"/"}`, "✗ path: / is outside the worktree"},
		{"ls", `{"path":"secret"}`, "(the directory is empty)"},
		{"ls", `{"path":7}`, `✗ wrong arguments: path: type: 7 has type "integer", want "string"`},
	} {
		if got := call(c.name, c.arguments); got != c.want {
			t.Errorf("%s %s:\n%s\nwant:\n%s", c.name, c.arguments, got, c.want)
		}
	}
}

// In a hostile repository, no tool leaves the worktree, blocks, or reads too much.
func TestHostile(t *testing.T) {
	root, call := tree(t, map[string]string{"a\nb": "needle\n", "z": "needle\n", "secret/key": "needle\n", "sub/x": "needle\n"})
	outside := t.TempDir()
	write(t, filepath.Join(outside, "key"), "needle outside\n")
	for name, to := range map[string]string{"out": outside, "file": filepath.Join(outside, "key"), "in": "secret", "loop": "loop", "up": ".."} {
		if err := os.Symlink(to, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(root, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	sparse, err := os.Create(filepath.Join(root, "sparse"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(sparse.Truncate(10<<30), sparse.Close()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, arguments, want string }{
		{"grep", `{"pattern":"needle"}`, "\"a\\nb\":1:needle\nsub/x:1:needle\nz:1:needle"},
		{"grep", `{"pattern":"needle","path":"in"}`, "No lines match."},
		{"grep", `{"pattern":"needle","path":"out"}`, "✗ path: out is outside the worktree"},
		{"grep", `{"pattern":"needle","path":"pipe"}`, "No lines match."},
		{"glob", `{"pattern":"*"}`, "\"a\\nb\"\nsparse\nsub/x\nz"},
		{"ls", `{"path":"up"}`, "✗ path: up is outside the worktree"},
		{"ls", `{"path":"loop"}`, "✗ path: loop does not exist"},
		{"ls", `{"path":"pipe"}`, "✗ path: pipe cannot be listed: it is not a directory"},
		{"ls", `{"path":"in"}`, "(the directory is empty)"},
	} {
		if got := call(c.name, c.arguments); got != c.want {
			t.Errorf("%s %s:\n%s\nwant:\n%s", c.name, c.arguments, got, c.want)
		}
	}
	text := call("ls", `{}`)
	for _, want := range []string{`"a\nb"` + "\t7\n", "file -> " + outside + "/key\n", "loop -> loop\n", "pipe (not a file)\n", "sparse\t10737418240\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("ls: %s\nwithout %q", text, want)
		}
	}
}

// A listed directory that has become a link shows nothing that a rule denies.
func TestLinkInTheListing(t *testing.T) {
	root, call := tree(t, map[string]string{"secret/key": "needle\n", "d/key": "needle\n"})
	if got := call("grep", `{"pattern":"needle"}`); got != "d/key:1:needle" {
		t.Fatal(got)
	}
	if err := errors.Join(os.RemoveAll(filepath.Join(root, "d")), os.Symlink("secret", filepath.Join(root, "d"))); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"grep", "glob"} {
		if got := call(name, `{"pattern":"needle"}`); !strings.HasPrefix(got, "No ") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// Long answers are truncated with a note.
func TestLong(t *testing.T) {
	files := map[string]string{"long": strings.Repeat("needle "+strings.Repeat("x", 400)+"\n", 500)}
	for i := range 1100 {
		files[fmt.Sprintf("f/%04d", i)] = "n\n"
	}
	_, call := tree(t, files)
	for arguments, want := range map[string]string{
		`grep {"pattern":"needle"}`:              "(there are more lines: use a narrower pattern, path or glob)",
		`grep {"pattern":"n","filesOnly":true}`:  "(there are more files: use a narrower pattern, path or glob)",
		`grep {"pattern":"^n$"}`:                 "f/0199:1:n\n(there are more lines: use a narrower pattern, path or glob)",
		`glob {"pattern":"f/*"}`:                 "f/0999\n(1000 of 1100: use a narrower pattern)",
		`ls {"path":"f"}`:                        "0999\t2\n(1000 of 1100: list a directory below)",
		`grep {"pattern":"needle","context":10}`: "(there are more lines: use a narrower pattern, path or glob)",
	} {
		name, rest, _ := strings.Cut(arguments, " ")
		got := call(name, rest)
		if len(got) > 31_000 || !strings.HasSuffix(got, want) {
			t.Errorf("%s: %d bytes: …%s", arguments, len(got), got[max(0, len(got)-200):])
		}
	}
}

// FuzzPaths checks that no path from a model shows files outside of the worktree.
func FuzzPaths(f *testing.F) {
	for _, name := range []string{"", ".", "..", "/", "out", "out/key", "../out", "in/../../x", "a\x00b", "~", "//", "up/up", "\xff", "d/./.."} {
		f.Add(name)
	}
	root, call := tree(f, map[string]string{"d/x": "inside\n", "secret/key": "hidden\n"})
	outside := f.TempDir()
	write(f, filepath.Join(outside, "key"), "hidden\n")
	for name, to := range map[string]string{"out": outside, "up": "..", "in": "secret"} {
		if err := os.Symlink(to, filepath.Join(root, name)); err != nil {
			f.Fatal(err)
		}
	}
	f.Fuzz(func(t *testing.T, name string) {
		quoted, err := json.Marshal(name)
		if err != nil {
			t.Skip()
		}
		for _, c := range [][2]string{{"ls", `{"path":%s}`}, {"grep", `{"pattern":"hidden","path":%s}`}, {"glob", `{"pattern":"**/key","path":%s}`}} {
			got := call(c[0], fmt.Sprintf(c[1], quoted))
			if shown, isError := strings.CutPrefix(got, "✗ "); !isError && (strings.Contains(shown, "hidden") || strings.Contains(shown, "key\t") || strings.HasSuffix(shown, "key")) && !strings.Contains(shown, "->") {
				t.Errorf("%s %q: %s", c[0], name, got)
			}
		}
	})
}
