package permission

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxLinks limits the symbolic links in a path, as Linux does.
const maxLinks = 40

// Resolve returns path as an absolute, clean path with all symbolic links resolved. A
// relative path is relative to dir. The last elements of the path need not exist; a
// dangling link resolves to its target.
//
// A path such as link/../file, which cleaning would change to a different file, is an error.
func Resolve(dir, path string) (string, error) {
	switch {
	case path == "":
		return "", errors.New("the path is empty")
	case strings.ContainsRune(path, 0):
		return "", errors.New("the path holds a NUL byte")
	case strings.HasPrefix(path, "~"):
		return "", fmt.Errorf("%s: paths that begin with ~ are not accepted", path)
	case !filepath.IsAbs(path):
		path = dir + "/" + path
	}
	place, err := walk(path)
	if err != nil {
		return "", err
	}
	cleaned, err := walk(filepath.Clean(path))
	if err != nil {
		return "", err
	}
	if place != cleaned {
		return "", fmt.Errorf("%s goes through a symbolic link and back: name the file directly", path)
	}
	return place, nil
}

// walk follows path like the kernel, element by element.
func walk(path string) (string, error) {
	todo := strings.Split(path, "/")
	place, links := "/", 0
	for len(todo) > 0 {
		element := todo[0]
		todo = todo[1:]
		switch element {
		case "", ".":
			continue
		case "..":
			place = filepath.Dir(place)
			continue
		}
		next := filepath.Join(place, element)
		target, err := os.Readlink(next)
		switch {
		case errors.Is(err, fs.ErrPermission):
			return "", fmt.Errorf("resolve %s: %w", path, err)
		case err != nil:
			place = next // not a link, or it does not exist
			continue
		}
		if links++; links > maxLinks {
			return "", fmt.Errorf("%s: too many symbolic links", path)
		}
		if filepath.IsAbs(target) {
			place = "/"
		}
		todo = slices.Concat(strings.Split(target, "/"), todo)
	}
	return place, nil
}
