// Package glob checks globs that repositories and agents write, before package doublestar matches them.
package glob

import (
	"fmt"

	"github.com/bmatcuk/doublestar/v4"
)

// MaxLength limits the bytes of a glob.
const MaxLength = 4096

// maxAlternatives limits the combinations of alternatives in the braces of a glob: {a,b}{c,d} has
// 4. All of them may be tried for each path.
const maxAlternatives = 1000

// Check returns an error if a glob takes too long to match, and doublestar.ErrBadPattern if it is not
// valid.
func Check(glob string) error {
	switch {
	case len(glob) > MaxLength:
		return fmt.Errorf("the glob has more than %d bytes", MaxLength)
	case !doublestar.ValidatePattern(glob):
		return doublestar.ErrBadPattern
	case alternatives(glob) > maxAlternatives:
		return fmt.Errorf("the glob has more than %d combinations of the alternatives in its braces", maxAlternatives)
	}
	return nil
}

// alternatives returns the number of combinations. The result may be too low above the limit.
func alternatives(glob string) int {
	all, open := 1, []int{}
	for _, c := range glob {
		switch last := len(open) - 1; {
		case c == '{':
			open = append(open, 1)
		case c == ',' && last >= 0:
			open[last]++
		case c == '}' && last >= 0:
			if all *= open[last]; all > maxAlternatives {
				return all
			}
			open = open[:last]
		}
	}
	return all
}
