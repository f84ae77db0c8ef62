package file

import "golang.org/x/sys/unix"

// directory are the flags with which a directory is opened to reach the files in it.
const directory = unix.O_RDONLY | unix.O_DIRECTORY

// renameNew is rename(2), except that it fails with EEXIST if the new name exists.
func renameNew(from, to string) error {
	return unix.RenamexNp(from, to, unix.RENAME_EXCL)
}
