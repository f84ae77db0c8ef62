package overlay

import (
	"strings"

	"golang.org/x/sys/unix"
)

// Mount mounts the directory at a path, and returns the path where it is: Plain, if the kernel refuses.
//
// Attributes are stored as the user's, because a program in a user namespace cannot store others. The files are not
// synced: after a crash of the machine, a cache may contain empty files, as it does elsewhere.
func (d Dir) Mount(at string) string {
	if d.Upper == "" {
		return d.Plain
	}
	options := "userxattr,index=off,volatile,lowerdir=" + strings.Join(d.Lower, ":") + ",upperdir=" + d.Upper + ",workdir=" + d.Work
	if unix.Mount("overlay", at, "overlay", unix.MS_NOSUID|unix.MS_NODEV, options) != nil {
		return d.Plain
	}
	return at
}
