package fakeclaude_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/coven-run/coven/internal/fake/fakeclaude"
)

// TestMain runs the fake CLI if the program is called claude, and the
// permission server if the first argument selects it.
func TestMain(m *testing.M) {
	switch {
	case filepath.Base(os.Args[0]) == "claude":
		os.Exit(fakeclaude.Main(os.Args[1:]))
	case len(os.Args) == 3 && os.Args[1] == permissionRole:
		os.Exit(servePermissions(os.Args[2]))
	default:
		os.Exit(m.Run())
	}
}
