// Package dashed converts names of people's files to names of lower-case letters, digits and dashes.
package dashed

import "strings"

// Name returns a text in lower case, with a dash between its runs of letters and digits, at most max bytes. Letters
// other than a to z count as dashes: the name is "" if there are no others.
func Name(text string, max int) string {
	name := strings.ToLower(strings.Join(strings.FieldsFunc(text, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9')
	}), "-"))
	if len(name) > max {
		name = strings.Trim(name[:max], "-")
	}
	return name
}
