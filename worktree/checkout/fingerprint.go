package checkout

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/coven-run/coven/internal/file/regularfile"
)

// A fingerprint identifies the content of a path: type, permissions and bytes, and for a directory
// everything in it. It is empty if the path does not exist.
type fingerprint string

// fingerprintOf returns the fingerprint of a path. If a parent of the path is not a directory, the path does not
// exist.
func fingerprintOf(path string) (fingerprint, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	switch {
	case info.Mode().IsRegular():
		return ofFile(path, info)
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(path)
		return ofBytes("link", []byte(target)), err
	case info.IsDir():
		return ofDirectory(path)
	}
	return fingerprint("other " + info.Mode().Type().String()), nil
}

func ofBytes(kind string, data []byte) fingerprint {
	sum := sha256.Sum256(data)
	return fingerprint(kind + " " + hex.EncodeToString(sum[:]))
}

func ofFile(path string, info fs.FileInfo) (fingerprint, error) {
	file, err := regularfile.Open(path, syscall.O_NOFOLLOW)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", err
	}
	return fingerprint(fmt.Sprintf("file %o %x", info.Mode().Perm(), sum.Sum(nil))), nil
}

func ofDirectory(path string) (fingerprint, error) {
	entries, err := os.ReadDir(path) // sorted
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, entry := range entries {
		child, err := fingerprintOf(filepath.Join(path, entry.Name()))
		if err != nil {
			return "", err
		}
		sum.Write(fmt.Appendf(nil, "%q %s\n", entry.Name(), child))
	}
	return fingerprint(fmt.Sprintf("dir %x", sum.Sum(nil))), nil
}

// A node identifies a file independently of its name.
type node struct {
	Dev uint64 `json:"dev"`
	Ino uint64 `json:"ino"`
}

// is reports whether n is the recorded node. It does not compare the devices, because a file system can have another
// device number after a restart.
func (n node) is(recorded node) bool { return n.Ino == recorded.Ino }

// nodeOf returns the node at a path, or zero if the path does not exist.
func nodeOf(path string) (node, error) {
	st, err := statOf(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return node{}, nil
	}
	return identity(st), err
}

func statOf(path string) (unix.Stat_t, error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return st, &fs.PathError{Op: "lstat", Path: path, Err: err}
	}
	return st, nil
}

//nolint:unconvert // the types depend on the system
func identity(st unix.Stat_t) node { return node{Dev: uint64(st.Dev), Ino: uint64(st.Ino)} }
