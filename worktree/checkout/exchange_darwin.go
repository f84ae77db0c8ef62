package checkout

import "golang.org/x/sys/unix"

func exchangeAt(from, to place) error {
	return unix.RenameatxNp(from.dir, from.name, to.dir, to.name, unix.RENAME_SWAP)
}

func moveAt(from, to place) error {
	return unix.RenameatxNp(from.dir, from.name, to.dir, to.name, unix.RENAME_EXCL)
}
