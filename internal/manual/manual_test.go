package manual_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli/root"
	"github.com/coven-run/coven/internal/manual"
)

func written(t *testing.T) map[string]string {
	t.Helper()
	dir := t.TempDir()
	n, err := manual.WriteMan(root.NewRoot(root.NewApp("")), dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		all[d.Name()] = string(text)
		return err
	})
	if err != nil || len(all) != n {
		t.Fatalf("%v, %d pages of %d", err, len(all), n)
	}
	return all
}

// Every visible command has a man page, which is the same on every machine and day.
func TestWriteMan(t *testing.T) {
	all := written(t)
	var check func(cmd *cobra.Command)
	check = func(cmd *cobra.Command) {
		name := strings.ReplaceAll(cmd.CommandPath(), " ", "-") + ".1"
		if !strings.Contains(all[name], "EXIT STATUS") || !strings.Contains(all[name], "130  interrupted") {
			t.Errorf("%s has no exit codes", name)
		}
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() && sub.Name() != "help" {
				check(sub)
			}
		}
	}
	check(root.NewRoot(root.NewApp("")))
	for _, hidden := range []string{"coven-gate.1", "coven-plugin.1"} {
		if _, ok := all[hidden]; ok {
			t.Errorf("%s is a page", hidden)
		}
	}
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("COLUMNS", "40")
	t.Setenv("HOME", t.TempDir())
	now := time.Now()
	for name, text := range written(t) {
		if text != all[name] {
			t.Errorf("%s depends on the environment", name)
		}
		for _, local := range []string{home + "/", now.Format(time.DateOnly), now.Format("02-Jan-2006")} {
			if strings.Contains(text, local) {
				t.Errorf("%s contains %s", name, local)
			}
		}
	}
}

// groff formats each man page without a warning.
func TestManFormat(t *testing.T) {
	if _, err := exec.LookPath("groff"); err != nil {
		t.Skip("groff is not installed")
	}
	for name, text := range written(t) {
		cmd := exec.Command("groff", "-man", "-wall", "-Tutf8", "-Z")
		cmd.Stdin = strings.NewReader(text)
		var warnings strings.Builder
		cmd.Stderr = &warnings
		if err := cmd.Run(); err != nil || warnings.Len() > 0 {
			t.Errorf("%s: %v\n%s", name, err, warnings.String())
		}
	}
}
