package object

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
)

// A pack has the objects that git finds in it, also with offsets of 64 bits. Other formats and damage are left to git.
func TestPack(t *testing.T) {
	dir := t.TempDir()
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
			"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	git("init", "-q")
	lines := strings.Split(strings.Repeat("line\n", 2000), "\n")
	for i := range 20 {
		lines[i*90] = fmt.Sprint("other ", i)
		if err := os.WriteFile(filepath.Join(dir, "file"), []byte(strings.Join(lines, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
		git("add", "file")
		git("commit", "-qm", fmt.Sprint(i))
	}
	git("repack", "-adfq")
	packs, err := filepath.Glob(filepath.Join(dir, ".git/objects/pack/*.pack"))
	if err != nil || len(packs) != 1 {
		t.Fatalf("%v, %v", packs, err)
	}
	index := strings.TrimSuffix(packs[0], ".pack") + ".idx"
	ids := strings.Fields(git("cat-file", "--batch-check=%(objectname)", "--batch-all-objects"))
	read := func(id string) (body []byte, err error) {
		err = Open(filepath.Join(dir, ".git")).use(func(s *Storage) error {
			_, body, err = s.body(plumbing.NewHash(id))
			return err
		})
		return body, err
	}
	for _, version := range []string{"2", "2,100"} {
		git("index-pack", "--index-version="+version, "-o", index, packs[0])
		for _, id := range ids {
			kind := strings.TrimSpace(git("cat-file", "-t", id))
			if body, err := read(id); err != nil || string(body) != git("cat-file", kind, id) {
				t.Errorf("version %s, %s: %v", version, id, err)
			}
		}
		if _, err := read(strings.Repeat("0", 40)); !errors.Is(err, plumbing.ErrObjectNotFound) {
			t.Errorf("version %s, none: %v", version, err)
		}
	}
	whole, err := os.ReadFile(index)
	if err != nil {
		t.Fatal(err)
	}
	git("index-pack", "--index-version=1", "-o", index, packs[0])
	if _, err := read(ids[0]); !errors.Is(err, ErrUnsupported) {
		t.Errorf("version 1: %v", err)
	}
	for name, damaged := range map[string][]byte{
		"empty": nil, "header": whole[:100], "IDs": whole[:1040], "order": append(append([]byte(indexHeader), 9), whole[9:]...), "offsets": whole[:len(whole)-40-60*8-60*4],
	} {
		if err := errors.Join(os.Remove(index), os.WriteFile(index, damaged, 0o600)); err != nil {
			t.Fatal(err)
		}
		if _, err := read(ids[len(ids)-1]); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
