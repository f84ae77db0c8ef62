package repo

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/names"
)

// Sharing is the setting core.sharedRepository. The zero value means that the repository is not shared.
type Sharing struct {
	value string      // as git's configuration has it
	perm  fs.FileMode // the permissions on files that users other than the owner get
}

// sharing reads the setting.
func (r *Repo) sharing(ctx context.Context) (Sharing, error) {
	settings, err := r.Git().Configured(ctx, `^core\.sharedrepository$`, false)
	if err != nil || len(settings) == 0 {
		return Sharing{}, err
	}
	s := Sharing{value: settings[len(settings)-1].Value}
	switch strings.ToLower(s.value) {
	case "group", "true", "yes", "on", "1", "":
		s.perm = 0o060
	case "all", "world", "everybody", "2":
		s.perm = 0o064
	default:
		mode, _ := strconv.ParseUint(s.value, 8, 32) // umask and false give others nothing
		s.perm = fs.FileMode(mode) & 0o066
	}
	return s, nil
}

// On reports whether other users have permissions.
func (s Sharing) On() bool { return s.perm != 0 }

// config returns the setting for the configuration of another git directory, whose git writes to this repository.
func (s Sharing) config() string {
	if !s.On() {
		return ""
	}
	return git.ConfigText([]string{"core.sharedrepository\n" + s.value})
}

// Share gives the users of a shared repository git's permissions on a file or directory that this user has created, and
// the group of the git directory.
func (r *Repo) Share(path string) {
	info, err := os.Lstat(path)
	if !r.Sharing.On() || err != nil || !info.IsDir() && !info.Mode().IsRegular() || !isMine(info) {
		return
	}
	mode := info.Mode().Perm() | r.Sharing.perm
	if info.IsDir() {
		mode |= r.Sharing.perm&0o044>>2 | fs.ModeSetgid
	}
	if top, err := os.Stat(r.GitDir); err == nil && groupOf(top) != groupOf(info) {
		_ = os.Lchown(path, -1, groupOf(top)) // the owner may not be in that group
	}
	if mode != info.Mode()&(fs.ModePerm|fs.ModeSetgid) {
		_ = os.Chmod(path, mode) // the operation that needs it reports an error
	}
}

// ShareState creates the directories and files in which all users of a shared repository write. Records of sessions in
// them stay private.
func (r *Repo) ShareState() {
	if !r.Sharing.On() {
		return
	}
	dirs := []string{filepath.Join(r.GitDir, "worktrees"), r.StatePath()}
	for _, name := range []string{"locks", "tasks", "tasks/.scratch", "tasks/.checkout", "lines", "moves", "pool", "records"} {
		dirs = append(dirs, r.StatePath(name))
	}
	for _, name := range []string{".coven", names.WorktreesDir, ".coven/sessions", ".coven/run", ".coven/run/inbox", ".coven/run/damaged", ".coven/run/limits", ".coven/run/gates"} {
		dirs = append(dirs, filepath.Join(r.Root, name))
	}
	for _, dir := range dirs {
		_ = os.Mkdir(dir, 0o755) // the operation that needs it reports an error
		r.Share(dir)
	}
	log, err := r.RefLog().Open()
	if err == nil {
		_ = log.Close()
		r.Share(string(r.RefLog()))
	}
}

// OwnStatePath is StatePath for a directory that is of no use to other users. Of a shared repository, the first user has
// the directory with the name, and each other one has one of their own.
func (r *Repo) OwnStatePath(name string) string {
	path := r.StatePath(name)
	if r.IsForeign(path) {
		path += "-" + strconv.Itoa(os.Geteuid())
	}
	return path
}

// IsForeign reports whether a file belongs to another user of a shared repository.
func (r *Repo) IsForeign(path string) bool {
	if !r.Sharing.On() {
		return false
	}
	info, err := os.Lstat(path)
	return err == nil && !isMine(info)
}

// IsForeignTask reports whether the worktree of the task with this name, or its record, belongs to another user.
func (r *Repo) IsForeignTask(name string) bool {
	return r.IsForeign(r.StatePath("tasks", name)) || r.IsForeign(r.WorktreePath(name))
}

// isTrusted reports whether only the user, root, or users of a shared repository, who could change its hooks, can have
// created a file.
func (r *Repo) isTrusted(info fs.FileInfo) bool {
	if isOurs(info) {
		return true
	}
	top, err := os.Stat(r.GitDir)
	return err == nil && r.Sharing.perm&0o020 != 0 && groupOf(top) == groupOf(info)
}

func isMine(info fs.FileInfo) bool {
	owner, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(owner.Uid) == os.Geteuid()
}

func groupOf(info fs.FileInfo) int {
	if owner, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(owner.Gid)
	}
	return -1
}
