package file

import "golang.org/x/sys/unix"

// directory are the flags with which a directory is opened to reach the files in it.
const directory = unix.O_RDONLY | unix.O_DIRECTORY
