package process

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/process/reads"
)

// A file is an input by whatever path a program reads it. There are no inputs if the record could miss one.
func TestUnusualInputs(t *testing.T) {
	y := newYard(t)
	l := launcher(t, PIDNamespace)
	temp := filepath.Join(y.write, "temp")
	must(0, os.Mkdir(temp, 0o700))
	must(0, os.WriteFile(y.write+"/.git", nil, 0o600))
	must(0, os.Symlink("/bin/sh", y.write+"/interpreter"))
	must(0, os.WriteFile(y.write+"/script", []byte("#!"+y.write+"/interpreter\n:\n"), 0o700))
	must(0, os.WriteFile(y.write+"/relative", []byte("#!interpreter\n:\n"), 0o700))
	must(0, os.Mkdir(y.write+"/bound", 0o700))
	must(0, os.WriteFile(y.write+"/bound/file", []byte("1"), 0o600))
	elsewhere := filepath.Join(y.root, "elsewhere")
	must(0, os.Mkdir(elsewhere, 0o700))
	must(0, os.WriteFile(elsewhere+"/file", []byte("1"), 0o600))
	record := func(script string) []byte {
		var list bytes.Buffer
		b := y.boundary()
		b.Write = append(b.Write, elsewhere)
		b.Reads = &Reads{To: &list, Scope: reads.Scope{Inputs: &reads.Inputs{Dir: y.write, Except: []string{temp}, Bound: []string{y.write + "/bound"}}}}
		_, _, err := l.Run(t.Context(), Spec{Argv: shell(script), Dir: y.write, Env: []string{"PATH=" + os.Getenv("PATH")}, Boundary: b})
		must(0, err)
		_, inputs := reads.Split(list.Bytes())
		return inputs
	}
	compare := func(inputs []byte) string {
		b := y.boundary()
		_, out, err := l.Run(t.Context(), Spec{Argv: l.Compare(), Dir: y.write, Env: []string{"PATH=" + os.Getenv("PATH")}, Boundary: b, Input: inputs})
		must(0, err)
		return string(out)
	}
	for name, script := range map[string]string{
		"a link in an excepted directory":          "ln -sf $PWD/input temp/link; cat temp/link",
		"a directory link in an excepted one":      "ln -sfn $PWD temp/dir; cat temp/dir/input",
		"a parent of an excepted directory":        "cat temp/../input",
		"the working directory of a process":       "cat /proc/self/cwd/input",
		"a descriptor of a process":                "exec 3<. && cat /proc/self/fd/3/input",
		"a descriptor":                             "exec 3<. && cat /dev/fd/3/input",
		"the working directory of a thread":        "cat /proc/thread-self/cwd/input",
		"a relative link in an excepted directory": "ln -sf ../input temp/relative; cat temp/relative",
		"a file beside one that is only written":   "cat input; echo x >>" + elsewhere + "/log",
		"a hard link":                              "cat hard",
		"a missing target in a directory of temp":  "cat input; ln -sf $PWD/missing temp/m; test -e temp/m",
	} {
		file := y.write + "/input"
		must(0, os.WriteFile(file, []byte("1"), 0o600))
		_ = os.Remove(y.write + "/hard")
		must(0, os.Link(file, y.write+"/hard"))
		inputs := record(script)
		if got := compare(inputs); inputs == nil || got != "" {
			t.Errorf("%s: %q differs, %s", name, got, inputs)
		}
		must(0, os.WriteFile(file, []byte("2"), 0o600))
		if compare(inputs) == "" {
			t.Errorf("%s: nothing differs", name)
		}
	}
	interpreted := record("./script")
	must(0, os.Remove(y.write+"/interpreter"))
	must(0, os.Symlink("/bin/true", y.write+"/interpreter"))
	if got := strings.TrimSpace(compare(interpreted)); got != y.write+"/interpreter" {
		t.Errorf("%q differs, not the interpreter", got)
	}
	for name, script := range map[string]string{
		"the git directory of the worktree":    "cat .git",
		"a relative interpreter":               "./relative",
		"a file shown by a mount that changed": "cat bound/file && echo 2 >bound/file",
		"another root":                         "python3 -c 'import os; os.chroot(\".\")'",
		"a mount":                              "mount --bind temp temp",
		"a file elsewhere that changed":        "cat " + elsewhere + "/file && echo 2 >" + elsewhere + "/file",
	} {
		if got := record(script); got != nil {
			t.Errorf("%s: inputs are recorded: %s", name, got)
		}
	}
	if got := compare([]byte(`{"scope": {}, "inputs": []}`)); got == "" {
		t.Error("a record without inputs is as before")
	}
	var list bytes.Buffer
	must(0, reads.Scope{Inputs: &reads.Inputs{Dir: y.write}}.Write(&list, reads.Opened{}))
	if list.Len() > 0 {
		t.Error("inputs are recorded without a listener")
	}
}
