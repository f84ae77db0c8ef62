package shellword

import "fmt"

// Edit returns the command that opens a file in the user's editor. It opens the file at
// the line unless line is 0.
func Edit(file string, line int) string {
	if line == 0 {
		return "${EDITOR:-vi} " + Word(file)
	}
	return fmt.Sprintf("${EDITOR:-vi} +%d %s", line, Word(file))
}
