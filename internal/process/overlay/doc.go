// Package overlay gives a program directories of its user, such as caches, in which all changes go elsewhere. The user's
// directory stays as it is. The launcher imports this package.
package overlay

// Dir is a directory of the user as a program sees it. The paths contain none of the bytes in Special, and are UTF-8.
type Dir struct {
	// Places lists the directories where the program sees it. Missing ones are skipped.
	Places []string
	// Lower lists the directories whose files it contains, the first one first. They do not change while programs run,
	// except the user's. A file that is a whiteout in one of them is missing.
	Lower []string
	// Upper gets the changes, and Work is an empty directory for the kernel. Only one program may use them at a time. They
	// are empty if the program sees Plain.
	Upper, Work string
	// Plain is a directory that the program sees, and can change, if the kernel refuses to combine the others.
	Plain string
}

// Special lists the bytes with a meaning in the options of the kernel.
const Special = ":,\\\"\n"
