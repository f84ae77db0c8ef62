package checkout

import "golang.org/x/sys/unix"

func exchangeAt(from, to place) error {
	return unix.Renameat2(from.dir, from.name, to.dir, to.name, unix.RENAME_EXCHANGE)
}

func moveAt(from, to place) error {
	return unix.Renameat2(from.dir, from.name, to.dir, to.name, unix.RENAME_NOREPLACE)
}
