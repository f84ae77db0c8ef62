package file

import "golang.org/x/sys/unix"

// directory are the flags with which a directory is opened to reach the files in it. It need not be readable.
const directory = unix.O_PATH | unix.O_DIRECTORY
