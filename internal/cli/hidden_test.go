package cli

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/terminal"
)

// Nothing that coven prints shows a secret. Package control tests the rest.
func TestSecretsAreHidden(t *testing.T) {
	const value = "s3cret-value"
	hide := func(text string) string { return strings.ReplaceAll(text, value, "***") }
	out, errs := &bytes.Buffer{}, &bytes.Buffer{}
	p := &project.Project{Env: &project.Environment{Environ: os.Environ}, Hide: hide}
	a := &App{Environment: p.Env, Out: out, Err: errs, project: p}
	stop := a.Watch(&control.Controller{Project: p}, false, terminal.Lines)
	if err := a.Showf("d %s\n", value); err != nil {
		t.Fatal(err)
	}
	stop()
	if err := a.Printf("a %s\n", value); err != nil {
		t.Fatal(err)
	}
	a.PrintError(exit.Usagef("next", "e %s", value))
	for name, text := range map[string]string{"screen": out.String(), "errors": errs.String()} {
		if strings.Contains(text, value) || !strings.Contains(text, "***") {
			t.Errorf("%s: %s", name, text)
		}
	}
}
