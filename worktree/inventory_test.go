package worktree

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/coven-run/coven/worktree/internal/names"
	"github.com/coven-run/coven/worktree/isolation"
	"github.com/coven-run/coven/worktree/pool"
	"github.com/coven-run/coven/worktree/rescue"
	"github.com/coven-run/coven/worktree/snapshot"
)

// An item is a file: 'f' is a plain file, 'x' an executable one, 'l' a symbolic link. git has no other
// modes and no empty directories.
type item struct {
	kind    byte
	content string
}

func sameItem(a, b item) bool { return a == b }

// An inventory lists everything that exists of a task's work. It is created without coven, by reading
// directories and by running git in the worktree as its user would.
type inventory struct {
	// files contains the files of the worktree, those of nested git directories, and below ".git" the parts
	// of the worktree's git directory that belong to submodules and to a merge, rebase or similar operation
	// in progress.
	files   map[string]item
	ignored map[string]bool   // files that are ignored or belong to git
	staged  map[string]string // content of the index: "STAGE OID PATH" -> content
	commits map[string]string // commits of branches, HEAD, the stash or a merge -> their source
}

// stateOfGit lists the files and directories of a merge, rebase or similar operation in progress.
func stateOfGit() []string {
	return []string{
		"MERGE_HEAD", "MERGE_MSG", "MERGE_MODE", "SQUASH_MSG", "CHERRY_PICK_HEAD", "REVERT_HEAD",
		"rebase-merge", "rebase-apply", "sequencer", "modules",
	}
}

func (c *doomedCase) takeInventory() *inventory {
	c.t.Helper()
	in := &inventory{files: map[string]item{}, ignored: map[string]bool{}, staged: map[string]string{}, commits: map[string]string{}}
	in.walk(c.t, c.w.Path, "")
	for name := range in.files {
		if strings.Contains("/"+name, "/.git/") {
			in.ignored[name] = true
		}
	}
	if link, isLink := in.files[".git"]; isLink && strings.HasPrefix(link.content, "gitdir: ") {
		delete(in.files, ".git")
	}
	in.branch(c, c.repo.GitDir, names.HeadsPrefix+c.w.Branch)
	in.stash(c, c.repo.GitDir)
	if !exists(c.w.Admin) {
		return in
	}
	for _, name := range stateOfGit() {
		in.walk(c.t, filepath.Join(c.w.Admin, name), ".git/"+name)
	}
	if c.gitOutput(c.w.Admin, "rev-parse", "--verify", "HEAD^{commit}") != "" {
		in.branch(c, c.w.Admin, "HEAD")
	}
	for name, it := range in.files {
		if !strings.HasPrefix(name, ".git/") || strings.HasPrefix(name, ".git/modules/") {
			continue
		}
		for _, oid := range regexp.MustCompile(`[0-9a-f]{40,64}`).FindAllString(it.content, -1) {
			if c.gitOutput(c.w.Admin, "cat-file", "-t", oid) == "commit" {
				in.commits[oid] = name
			}
		}
	}
	for _, dir := range []string{c.w.Admin, isolation.PrivatePath(c.w)} {
		if !exists(dir) {
			continue
		}
		for line := range strings.Lines(c.gitOutput(dir, "for-each-ref", "--format=%(objectname) %(refname)")) {
			oid, ref, _ := strings.Cut(strings.TrimSpace(line), " ")
			in.commits[oid] = ref
		}
		in.stash(c, dir)
	}
	in.index(c)
	if exists(c.w.Path) {
		for name := range strings.SplitSeq(c.gitOutput(c.w.Admin, "--work-tree="+c.w.Path, "ls-files", "-z", "-o", "-i", "--exclude-standard"), "\x00") {
			for file := range in.files {
				if name != "" && (file == name || strings.HasSuffix(name, "/") && strings.HasPrefix(file, name)) {
					in.ignored[file] = true
				}
			}
		}
	}
	return in
}

func (in *inventory) stash(c *doomedCase, dir string) {
	for oid := range strings.FieldsSeq(c.gitOutput(dir, "log", "-g", "--format=%H", "refs/stash")) {
		in.commits[oid] = "the stash"
	}
}

// branch adds the commit of a ref.
func (in *inventory) branch(c *doomedCase, dir, ref string) {
	if oid := c.gitOutput(dir, "rev-parse", "--verify", "--quiet", ref+"^{commit}"); oid != "" {
		in.commits[oid] = ref
	}
}

// walk adds the files in a directory.
func (in *inventory) walk(t testing.TB, top, as string) {
	err := filepath.WalkDir(top, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		relative, err := filepath.Rel(top, name)
		if err != nil {
			return err
		}
		it := item{kind: 'f'}
		switch info, err := entry.Info(); {
		case err != nil:
			return err
		case info.Mode()&fs.ModeSymlink != 0:
			it.kind = 'l'
			if it.content, err = os.Readlink(name); err != nil {
				return err
			}
		case !info.Mode().IsRegular():
			return nil
		default:
			if info.Mode()&0o100 != 0 {
				it.kind = 'x'
			}
			it.content = read(t, name)
		}
		in.files[filepath.Join(as, relative)] = it
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) { // a file may be in place of a directory
		t.Fatal(err)
	}
}

// index adds the content of the worktree's index.
func (in *inventory) index(c *doomedCase) {
	for field := range strings.SplitSeq(c.gitOutput(c.w.Admin, "ls-files", "-z", "-s"), "\x00") {
		meta, name, found := strings.Cut(field, "\t")
		words := strings.Fields(meta)
		if !found || words[0] == "160000" {
			continue
		}
		in.staged[words[2]+" "+words[1]+" "+name] = c.gitOutput(c.w.Admin, "cat-file", "blob", words[1])
	}
}

// gitOutput runs git with a git directory and returns its output, or "" if it fails. git finds the objects
// in the worktree's private directory.
func (c *doomedCase) gitOutput(dir string, args ...string) string {
	c.t.Helper()
	cmd := exec.Command("git", append([]string{"--git-dir=" + dir}, args...)...)
	cmd.Dir = c.dir
	if len(args) > 0 && strings.HasPrefix(args[0], "--work-tree=") {
		cmd.Dir = c.w.Path
	}
	cmd.Env = append(os.Environ(), "GIT_OPTIONAL_LOCKS=0", "GIT_ALTERNATE_OBJECT_DIRECTORIES="+isolation.PrivatePath(c.w, "objects"))
	out, err := cmd.Output()
	if err != nil {
		return ""
	}
	if slices.Contains(args, "blob") || slices.Contains(args, "-z") {
		return string(out)
	}
	return strings.TrimSpace(string(out))
}

// mustHave fails if an item of the inventory is neither in its old place nor can be restored.
func (c *doomedCase) mustHave(before *inventory, when string) {
	c.t.Helper()
	var lost []string
	defer func() {
		if len(lost) > 0 {
			slices.Sort(lost)
			c.t.Errorf("%d lost %s:\n%s", len(lost), when, strings.Join(lost[:min(len(lost), 12)], "\n"))
		}
	}()
	now := c.takeInventory()
	stores := []map[string]item{now.files}
	for _, dir := range value[[]string](c.t)(filepath.Glob(pool.Path(c.repo, "*"))) { // where coven du shows them
		there := &inventory{files: map[string]item{}}
		there.walk(c.t, dir, "")
		stores = append(stores, there.files)
	}
	contents := map[string]bool{}
	for _, s := range c.stored() {
		stores = append(stores, s)
		for _, it := range s {
			contents[it.content] = true
		}
	}
	for name, it := range before.files {
		copied := &inventory{files: map[string]item{}}
		copied.walk(c.t, filepath.Join(c.repo.Root, name), "")
		if !slices.ContainsFunc(stores, func(s map[string]item) bool { return s[name] == it }) && copied.files["."] != it {
			lost = append(lost, fmt.Sprintf("%c %q with %s", it.kind, name, short(it.content)))
		}
	}
	reachable := c.reachable()
	for _, s := range stores[1:] { // objects that git refused are stored as files
		if bundle, has := s[strings.ReplaceAll(rescue.BundleName, rescue.GitDirName, ".git")]; has {
			c.unbundle(bundle.content, reachable)
		}
		for name := range s {
			if _, oid, found := strings.Cut(name, ".git/common/objects/"); found {
				reachable[strings.ReplaceAll(oid, "/", "")] = true
			}
		}
	}
	for key, content := range before.staged {
		oid := strings.Fields(key)[1]
		if is, ok := now.staged[key]; !reachable[oid] && !contents[content] && (!ok || is != content) {
			lost = append(lost, fmt.Sprintf("staged %q with %s", key, short(content)))
		}
	}
	for oid, name := range before.commits {
		if !reachable[oid] && now.commits[oid] == "" {
			lost = append(lost, fmt.Sprintf("commit %s of %s", oid, name))
		}
	}
}

// unbundle adds the objects of a bundle to those that are reachable.
func (c *doomedCase) unbundle(bundle string, reachable map[string]bool) {
	c.t.Helper()
	file, clone := filepath.Join(c.t.TempDir(), "bundle"), filepath.Join(c.t.TempDir(), "clone")
	write(c.t, file, bundle)
	gitIn(c.t, c.repo.Root, "clone", "-q", "--mirror", "--shared", c.repo.Root, clone)
	for line := range strings.Lines(gitIn(c.t, clone, "bundle", "unbundle", file)) {
		commit, _, _ := strings.Cut(line, " ")
		for object := range strings.Lines(gitIn(c.t, clone, "rev-list", "--objects", commit)) {
			oid, _, _ := strings.Cut(strings.TrimSuffix(object, "\n"), " ")
			reachable[oid] = true
		}
	}
}

func short(content string) string {
	if len(content) > 60 {
		return fmt.Sprintf("%q... (%d bytes)", content[:60], len(content))
	}
	return fmt.Sprintf("%q", content)
}

// reachable returns the objects that are reachable from the repository's refs.
func (c *doomedCase) reachable() map[string]bool {
	c.t.Helper()
	cmd := exec.Command("git", "rev-list", "--objects", "--stdin")
	cmd.Dir = c.repo.Root
	cmd.Stdin = strings.NewReader(gitIn(c.t, c.repo.Root, "for-each-ref", "--format=%(objectname)"))
	out, err := cmd.Output()
	if err != nil {
		c.t.Fatalf("the repository is damaged: %v", err)
	}
	all := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		oid, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		all[oid] = true
	}
	return all
}

// stored returns the files that coven rescue restore and coven revert would write.
func (c *doomedCase) stored() (all []map[string]item) {
	c.t.Helper()
	ctx := c.t.Context()
	infos := value[[]rescue.Info](c.t)(rescue.List(ctx, c.repo, lostTask))
	if c.op.reverts {
		for _, s := range value[[]snapshot.Snapshot](c.t)(snapshot.List(ctx, c.repo, lostSession)) {
			infos = append(infos, rescue.Info{Ref: "snapshot", Commit: s.Commit})
		}
	}
	for _, info := range infos {
		if c.exported[info.Commit] == nil {
			dir := filepath.Join(c.dir, "exported", info.Commit)
			must(c.t, rescue.Export(ctx, c.repo, info, dir))
			in := &inventory{files: map[string]item{}}
			in.walk(c.t, dir, "")
			c.exported[info.Commit] = map[string]item{}
			for name, it := range in.files {
				c.exported[info.Commit][strings.ReplaceAll(name, rescue.GitDirName, ".git")] = it
			}
		}
		all = append(all, c.exported[info.Commit])
	}
	return all
}
