package isolation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"

	"github.com/google/renameio/v2"

	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/worktree/internal/names"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// lfsReference is the directory, in coven's part of the git directory, that stands for one with objects and the contents
// of Git LFS beside them.
const lfsReference = "lfs-reference"

// putLFSReference makes the contents of Git LFS that are elsewhere (lfs.storage) visible for it in private directories. Of
// an alternate, Git LFS reads the directory lfs beside the objects.
func putLFSReference(r *repo.Repo) error {
	if isUsualLFS(r) {
		return nil
	}
	dir := r.OwnStatePath(lfsReference)
	if err := os.MkdirAll(filepath.Join(dir, "objects"), 0o755); err != nil {
		return err
	}
	return renameio.Symlink(r.LFS, filepath.Join(dir, "lfs")) // an earlier setting may have led elsewhere
}

// settleLFS makes Git LFS store contents in the private directory that has this configuration file.
func settleLFS(ctx context.Context, w *repo.Worktree, config string) error {
	if isUsualLFS(w.Repo) {
		return nil
	}
	return w.Repo.Git().Run(ctx, "config", "--file", config, "--replace-all", "lfs.storage", "lfs")
}

// isUsualLFS reports whether Git LFS finds the repository's contents beside its objects.
func isUsualLFS(r *repo.Repo) bool { return r.LFS == filepath.Join(r.GitDir, "lfs") }

// takeLFS copies the contents that Git LFS has stored in the private common directory into the repository, since the
// agent's commits name them. Git LFS finds those of the repository through the alternates of the private directory.
func takeLFS(w *repo.Worktree) error {
	own, err := os.OpenRoot(w.Admin)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // a person has removed the worktree
	}
	if err != nil {
		return err
	}
	defer func() { _ = own.Close() }()
	stored, err := fs.Glob(own.FS(), names.PrivateDir+"/lfs/objects/??/??/*")
	if err != nil {
		return err
	}
	for _, name := range stored {
		oid := path.Base(name)
		if sum, err := hex.DecodeString(oid); err != nil || len(sum) != sha256.Size {
			continue
		}
		to := filepath.Join(w.Repo.LFS, "objects", oid[:2], oid[2:4], oid)
		if _, err := os.Lstat(to); err == nil {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
			return err
		}
		w.Repo.Share(filepath.Dir(to))
		w.Repo.Share(filepath.Dir(filepath.Dir(to)))
		if err := takeContent(own, name, oid, to); err != nil {
			return err
		}
	}
	return nil
}

// takeContent copies the file name to the path to if its hash is oid. Others are not contents.
func takeContent(own *os.Root, name, oid, to string) error {
	from, err := regularfile.OpenAt(own, name)
	if err != nil {
		return nil
	}
	defer func() { _ = from.Close() }()
	if isVast(from) {
		return nil
	}
	temp, err := os.CreateTemp(filepath.Dir(to), ".coven-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temp.Name()) }()
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(temp, sum), from)
	if err := errors.Join(err, temp.Sync(), temp.Close()); err != nil {
		return err
	}
	if hex.EncodeToString(sum.Sum(nil)) != oid {
		return nil
	}
	return errors.Join(os.Chmod(temp.Name(), 0o444), os.Rename(temp.Name(), to))
}

// isVast reports whether a file is much larger than the disk space that it takes. Git LFS writes no such files, and a
// copy would fill the disk.
func isVast(f *os.File) bool {
	const most = 1 << 30
	info, err := f.Stat()
	if err != nil {
		return true
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.Size()-st.Blocks*512 > most
}
