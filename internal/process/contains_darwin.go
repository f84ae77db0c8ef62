package process

// holds is for containments that macOS does not have.
func (*Child) holds(int) bool { return false }

// namespaceOf returns what it returns for a process that is gone: macOS has no
// namespaces.
func namespaceOf(int) inode { return inode{} }
