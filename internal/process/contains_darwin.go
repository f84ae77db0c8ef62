package process

// holds is not needed on macOS, which lacks the other containments.
func (*Child) holds(int) bool { return false }

// namespaceOf always returns zero: macOS has no namespaces.
func namespaceOf(int) inode { return inode{} }
