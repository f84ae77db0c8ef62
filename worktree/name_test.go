package worktree

import (
	"os/exec"
	"strings"
	"testing"
	"unicode"

	"github.com/coven-run/coven/worktree/internal/names"
)

func TestSafeName(t *testing.T) {
	for _, id := range []string{"bd-1", "T-1", "p-fix_it", "a.b", "A", "0", strings.Repeat("x", 80)} {
		equal(t, "safe id", names.SafeName(id), id)
	}
	cleaned := map[string]string{
		"a b/../c": "a-b-.-c-", "-x": "x-", "x.lock": "x.lock-", "": "task-", ".": "task-", "..": "task-",
		"😀": "task-", "a..b": "a.b-", "a.": "a-", ".git": "git-", "a@{1}": "a-1-", "refs/heads/x": "refs-heads-x-",
		"a\nb": "a-b-", "--upload-pack=x": "upload-pack-x-", "X.LOCK": "X.LOCK-",
	}
	for id, prefix := range cleaned {
		name := names.SafeName(id)
		if !strings.HasPrefix(name, prefix) || len(name) != len(prefix)+names.HashDigits {
			t.Errorf("SafeName(%q) = %q, want %s and %d digits", id, name, prefix, names.HashDigits)
		}
		checkName(t, id)
	}
	checkName(t, strings.Repeat("é ", 5000))
	if names.SafeName("a b") == names.SafeName("a-b") || names.SafeName("a b") == names.SafeName("a\tb") {
		t.Error("two ids have one name")
	}
	equal(t, "branch", names.Branch("T-1"), "coven/T-1")
}

func FuzzSafeName(f *testing.F) {
	for _, id := range []string{"a b/../c", "-x", "x.lock", "😀", "", ".", "..", "A", "a", "x.lock.lock", "a.-.b"} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) { checkName(t, id) })
}

// checkName checks a name against git's rules for refs and coven's own.
func checkName(t *testing.T, id string) {
	t.Helper()
	name := names.SafeName(id)
	if name == "" || len(name) > names.MaxName || strings.HasPrefix(name, "-") || strings.HasPrefix(name, ".") ||
		strings.ContainsFunc(name, func(c rune) bool { return c > unicode.MaxASCII || unicode.IsControl(c) }) ||
		strings.ContainsAny(name, "/\\ ~^:?*[{@") {
		t.Errorf("SafeName(%q) = %q is not safe", id, name)
	}
	if names.SafeName(name) != name {
		t.Errorf("SafeName(%q) = %q is not a safe id itself", id, name)
	}
	if err := exec.Command("git", "check-ref-format", "--branch", names.BranchPrefix+name).Run(); err != nil {
		t.Errorf("git does not take the branch of %q: %s", id, name)
	}
}
