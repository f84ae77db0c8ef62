package doctor

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/task/holder"
	"github.com/coven-run/coven/plugins/builtin"
	"github.com/coven-run/coven/worktree/claim"
)

// The tests install the versions of the CLIs that doctor compares with.
func TestTestedCLIs(t *testing.T) {
	pins, err := os.ReadFile(filepath.Join("..", "..", ".ci", "pins"))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{"claude": "CLAUDE_CODE", "codex": "CODEX", "qwen": "QWEN_CODE"}
	for _, c := range builtin.AgentCLIs() {
		if !strings.Contains(string(pins), "\n"+names[c.Program]+"="+c.Tested+"\n") {
			t.Errorf("the tests install another version of %s than %s", c.Program, c.Tested)
		}
	}
}

// There is one list of providers: grimoires may name, coven ships, and doctor checks the same ones.
func TestProviders(t *testing.T) {
	looked := []string{"acp"} // its program is the user's choice
	for _, c := range builtin.AgentCLIs() {
		looked = append(looked, c.Program)
	}
	if !slices.Equal(looked, project.BuiltinProviders()) {
		t.Errorf("doctor looks for %q, the providers are %q", looked, project.BuiltinProviders())
	}
}

func TestRoom(t *testing.T) {
	for free, want := range map[uint64]string{
		0: StateFail, control.FullDisk - 1: StateFail, control.FullDisk: StateWarn, lowDisk - 1: StateWarn, lowDisk: StateOK, 1<<64 - 1: StateOK,
	} {
		f := room("/x", free)
		if f.State != want || (f.Next == "") != (want == StateOK) {
			t.Errorf("%d bytes: %+v", free, f)
		}
	}
}

// A claim whose session is gone is not dead while a process may still work under it.
func TestAtLarge(t *testing.T) {
	now := time.Now()
	coven := exec.CommandContext(t.Context(), "sh", "-c", "echo ready; read line")
	coven.Args[0] = "coven"
	_, in := coven.StdinPipe()
	out, err := coven.StdoutPipe()
	if err := errors.Join(in, err, coven.Start()); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil { // before that, its name may not be visible yet
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = coven.Process.Kill(), coven.Wait() })
	p := &project.Project{Env: &project.Environment{Now: func() time.Time { return now }}}
	for name, c := range map[string]struct {
		holder  string
		expires time.Time
		atLarge bool
	}{
		"its coven runs":                 {fmt.Sprintf("%s%s/%d", holder.ActorPrefix, holder.Machine(), coven.Process.Pid), now, true},
		"another program has the number": {holder.Name(), now, false}, // the test process is not a coven
		"nobody has the number":          {holder.ActorPrefix + holder.Machine() + "/4194305", now.Add(time.Hour), false},
		"no number":                      {holder.ActorPrefix + holder.Machine() + "/x", now.Add(time.Hour), false},
		"another machine":                {holder.ActorPrefix + "elsewhere/1", now.Add(time.Hour), true},
		"another machine, long ago":      {holder.ActorPrefix + "elsewhere/1", now.Add(-time.Hour), false},
	} {
		held := claim.Held{Claim: claim.Claim{Holder: c.holder, Expires: c.expires}}
		if got := p.AtLarge(held); (got != "") != c.atLarge {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// Every checkup has its line in the guide.
func TestDoctorGuide(t *testing.T) {
	guide, err := os.ReadFile(filepath.Join("..", "..", "docs", "guides", "doctor.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range Checkups() {
		if !strings.Contains(string(guide), "\n| "+c.Name+" |") {
			t.Errorf("the guide says nothing of %s", c.Name)
		}
	}
}
