package file

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
)

// Exists reports whether a file of any type exists at this path.
func Exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

// CheckDirectory returns an error unless path is a directory. It does not follow a symbolic link, because
// the target may belong to the user.
func CheckDirectory(path string) error {
	info, err := os.Lstat(path)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is not a directory", path)
	}
	return err
}

// Sum returns the SHA-256 of a file's content.
func Sum(file string) (content [sha256.Size]byte, err error) {
	in, err := os.Open(file)
	if err != nil {
		return content, err
	}
	defer func() { _ = in.Close() }()
	hash := sha256.New()
	_, err = io.Copy(hash, in)
	return [sha256.Size]byte(hash.Sum(nil)), err
}
