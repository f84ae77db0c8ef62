package notice

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/coven-run/coven/internal/file/regularfile"
)

// announcedDir has an empty file for each state of a task of which a person was told, relative to the project.
const announcedDir = ".coven/run/notices"

// announcedAge is the age at which such a file is removed.
const announcedAge = 24 * time.Hour

// Announce reports whether the caller is the first of this user's processes to tell of a state. It is true if that is unknown.
func Announce(root, state string) bool {
	dir := filepath.Join(root, announcedDir)
	if regularfile.Directory(root, announcedDir) != nil || os.MkdirAll(dir, 0o700) != nil {
		return true
	}
	if entries, err := os.ReadDir(dir); err == nil {
		for _, e := range entries {
			if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > announcedAge {
				_ = os.Remove(filepath.Join(dir, e.Name())) // it is removed the next time
			}
		}
	}
	sum := sha256.Sum256([]byte(state))
	name := strconv.Itoa(os.Getuid()) + "-" + hex.EncodeToString(sum[:8])
	f, err := regularfile.OpenFileIn(dir, name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		_ = f.Close() // it is empty
	}
	return !errors.Is(err, fs.ErrExist)
}
