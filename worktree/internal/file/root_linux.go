package file

import "golang.org/x/sys/unix"

// directory are the flags with which a directory is opened to reach the files in it. It need not be readable.
const directory = unix.O_PATH | unix.O_DIRECTORY

// renameNew is rename(2), except that it fails with EEXIST if the new name exists.
func renameNew(from, to string) error {
	return unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
}
