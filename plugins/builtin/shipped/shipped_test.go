package shipped

import (
	"testing"

	"github.com/coven-run/coven/plugins/builtin"
)

// coven lists exactly the built-in plugins that it serves.
func TestFind(t *testing.T) {
	for kind, names := range builtin.Names() {
		for _, name := range names {
			if _, ok := Find(kind, name); !ok {
				t.Errorf("%s %s is not shipped", kind, name)
			}
		}
		if _, ok := Find(kind, "none"); ok {
			t.Errorf("a %s is shipped that nobody knows", kind)
		}
	}
}
