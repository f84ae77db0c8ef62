package evaluator

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
)

// The child has no environment, and cannot open files or connections. The test tries this in the restricted
// process itself, because JavaScript has no means to do so.
func TestRestricted(t *testing.T) {
	if os.Getenv("EVALUATOR_RESTRICTED") == "" {
		cmd := exec.Command("/proc/self/exe", "-test.run=^TestRestricted$", "-test.v")
		cmd.Env = []string{"EVALUATOR_RESTRICTED=1"}
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "--- PASS: TestRestricted") && !strings.Contains(string(out), "--- SKIP: TestRestricted") {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	if abi, err := ll.LandlockGetABIVersion(); err != nil || abi < 1 {
		t.Skip("the kernel has no Landlock")
	}
	name := filepath.Join(os.TempDir(), "evaluator-restricted")
	if err := restrict(time.Second); err != nil {
		t.Fatal(err)
	}
	if _, err := os.ReadFile("/etc/passwd"); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("read: %v", err)
	}
	if err := os.WriteFile(name, nil, 0o600); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("write: %v", err)
	}
	if err := exec.Command("/bin/true").Run(); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("exec: %v", err)
	}
}
