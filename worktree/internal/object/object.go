package object

// Modes of entries that are not files.
const (
	ModeSubmodule = "160000"
	ModeTree      = "040000" // only At and Level return it
)

// A Change is a path that differs between two trees. Mode and Oid are from the second tree, and all zeros
// for a deleted path.
type Change struct {
	Status                     byte // A, D, M or T; renames are not detected
	OldMode, OldOid, Mode, Oid string
	Path                       string
}

// An Entry is one file of a tree or an index.
type Entry struct{ Mode, Oid, Path string }

// An Object describes an object read by Objects.
type Object struct {
	Oid, Kind string
	Size      int64
}
