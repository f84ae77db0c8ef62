// Package ending shortens the output of programs for messages.
package ending

import (
	"fmt"
	"strings"
)

// maxBytes limits the shown output.
const maxBytes = 4 << 10

// Of returns the end of an output without the white space around it, since programs print the reason of a failure last. A
// first line says how much was cut.
func Of(output string) string {
	output = strings.TrimSpace(output)
	cut := len(output) - maxBytes
	if cut <= 0 {
		return output
	}
	return fmt.Sprintf("[... %d bytes cut ...]\n%s", cut, strings.ToValidUTF8(output[cut:], ""))
}
