package object

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/objfile"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"
)

// A directory has the objects of a git directory.
type directory struct {
	files *dotgit.DotGit
	packs []*pack
}

// loose calls read with a loose object. The error is plumbing.ErrObjectNotFound if there is none.
func loose[T any](d *directory, oid ID, read func(*objfile.Reader) (T, error)) (value T, err error) {
	f, err := d.files.Object(oid)
	if errors.Is(err, fs.ErrNotExist) {
		return value, plumbing.ErrObjectNotFound
	}
	if err != nil {
		return value, err
	}
	defer f.Close() //nolint:errcheck // read only
	r, err := objfile.NewReader(f)
	if err != nil {
		return value, err
	}
	defer r.Close() //nolint:errcheck // as above
	return read(r)
}

// inMemory reads a loose object.
func inMemory(r *objfile.Reader) (plumbing.EncodedObject, error) {
	kind, size, err := r.Header()
	if err == nil && size > maxObject {
		err = ErrUnsupported
	}
	if err != nil {
		return nil, err
	}
	o := &plumbing.MemoryObject{}
	o.SetType(kind)
	o.SetSize(size)
	if n, err := io.Copy(o, r); err != nil || n != size {
		return nil, errors.Join(err, fmt.Errorf("a loose object has %d bytes, not %d", n, size))
	}
	return o, nil
}
