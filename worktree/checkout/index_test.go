package checkout

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The index is read as git reads it, for every version and hash. git accepts a stamped index, with the
// timestamps of the file.
func TestIndex(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		for _, version := range []string{"2", "3", "4"} {
			t.Run(format+" "+version, func(t *testing.T) {
				t.Parallel()
				r := newRepo(t, filepath.Join(t.TempDir(), "r"), "--object-format="+format)
				r.git("config", "index.version", version)
				r.commit("mkdir -p d/e; for f in a ab abc abd d/e/f d/e/g z; do echo $f >$f; done; chmod +x a; ln -s a l; echo x >\"$(printf 'é\\n\\377')\"")
				r.sh("git update-index --skip-worktree abc; echo n >new; git add -N new")
				file := filepath.Join(r.gitDir(), "index")
				raw, err := os.ReadFile(file)
				r.ok(err)
				x, err := readIndex(raw, r.git("rev-parse", "HEAD"))
				r.ok(err)
				lines := strings.Split(strings.TrimSuffix(r.git("ls-files", "-z", "-s", "-t"), "\x00"), "\x00")
				for _, line := range lines {
					meta, path, _ := strings.Cut(line, "\t")
					words := strings.Fields(meta)
					e, ok := x.entries[path]
					if !ok || e.Mode != words[1] || e.Oid != words[2] || e.skip != (words[0] == "S") {
						t.Errorf("%q: %+v, want %q", path, e, meta)
					}
				}
				if len(x.entries) != len(lines) {
					t.Errorf("%d entries, want %d", len(x.entries), len(lines))
				}
				r.sh("cp -p z z.new; mv z.new z") // a file with another inode
				if r.git("diff-files", "--name-only") == "" {
					t.Fatal("git does not see that z is another file")
				}
				st, err := statOf(filepath.Join(r.dir, "z"))
				r.ok(err)
				x.stamp("z", st, st)
				x.stamp("not there", st, st)
				x.seal()
				r.ok(os.WriteFile(file, x.raw, 0o644))
				r.git("fsck", "--strict")
				if out := r.git("diff-files", "--name-only"); strings.Contains(out, "z") {
					t.Errorf("git looks at z again: %s", out)
				}
			})
		}
	}
}

// No input makes the parser of indexes panic or run for a long time.
func FuzzReadIndex(f *testing.F) {
	r := newRepo(f, filepath.Join(f.TempDir(), "r"))
	for _, version := range []string{"2", "4"} {
		r.git("config", "index.version", version)
		r.commit("mkdir -p d; echo 1 >a" + version + "; echo 1 >d/b; git update-index --split-index")
		r.git("update-index", "--no-split-index")
		raw, err := os.ReadFile(filepath.Join(r.gitDir(), "index"))
		r.ok(err)
		f.Add(raw)
	}
	f.Fuzz(func(_ *testing.T, raw []byte) {
		if x, err := readIndex(raw, strings.Repeat("0", 40)); err == nil {
			x.seal()
		}
	})
}

// A damaged tree or index may contain names that begin with a slash.
func TestClashesOddNames(t *testing.T) {
	x := &index{entries: map[string]entry{"/y": {}, "d/e": {}}}
	for path, want := range map[string]bool{"/x": false, "d": true, "d/e/f": true, "f": false} {
		if got := x.clashes(map[string]bool{path: true}); got != want {
			t.Errorf("%s clashes: %v", path, got)
		}
	}
}
