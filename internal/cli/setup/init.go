// Package setup holds the commands that set coven up or describe it: init, config, schema, completion, help
// and version.
package setup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"gopkg.in/yaml.v3"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/config"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/worktree"
)

// NewInit returns the command coven init.
func NewInit(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "init",
		Short: "Write .coven/config.yaml with this repository's checks",
		Long: `Write .coven/config.yaml. coven works without it; the file fixes the checks that a
change must pass before it lands, instead of detecting them on each run.`,
		Args: cobra.NoArgs,
		RunE: a.InProject(func(_ *cobra.Command, p *project.Project, _ []string) error {
			return writeConfig(a, p)
		}),
	}
}

func writeConfig(a *cli.App, p *project.Project) error {
	file := filepath.Join(p.Repo.Root, ".coven", "config.yaml")
	_, err := os.Stat(file)
	if err == nil {
		return a.Printf("%s already exists: nothing was changed\n  next: coven config list\n", filepath.Join(".coven", "config.yaml"))
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("init: %w", err)
	}
	if err := worktree.EnsureCovenDir(p.Repo.Root); err != nil {
		return err
	}
	checks, found := config.DetectChecks(p.Repo.Root)
	text, err := configText(p.Repo.Root, checks)
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return fmt.Errorf("init: %w", err)
	}
	said, next := "no checks found: changes land untested", `coven config set checks "COMMAND"`
	if len(found) > 0 {
		said, next = "checks found: "+strings.Join(found, ", "), `coven run -p "add a --version flag"`
	}
	if tools, err := project.Packers(p.Repo.Root); err == nil && len(tools) > 0 { // coven doctor reports the error
		said += "\n" + tools[0].Does + " .coven, with the records of sessions; to leave it out: coven doctor --fix"
	}
	return a.Printf("wrote .coven/config.yaml; commit it to share it\n%s\n  next: %s\n", said, next)
}

func configText(root string, checks []string) (string, error) {
	if checks == nil {
		checks = []string{}
	}
	list, err := yaml.Marshal(map[string][]string{"checks": checks})
	if err != nil {
		return "", fmt.Errorf("init: %w", err)
	}
	text := "# What coven does in this repository. All keys: coven help config\n\n" +
		"# The commands that must pass on the exact tree before it lands, in order.\n" + string(list)
	return text + worktreeText(root), nil
}

// worktreeText returns the section worktree: a setting for a project beside the checkout, and an offer for dependencies.
func worktreeText(root string) string {
	head, text := "\n# worktree:\n", ""
	if dir, manifest := config.DetectSibling(root); dir != "" {
		head = "\nworktree:\n"
		text = "  # " + manifest + " names " + dir + ", which worktrees find if they are beside it, too.\n  dir: ../{repo}-{task}\n"
	}
	if links := config.DetectLinks(root); len(links) > 0 {
		text += "  # To show worktrees the dependencies of your checkout, which they cannot change, remove the #:\n" +
			"  # link: [" + strings.Join(links, ", ") + "]\n"
	}
	if text == "" {
		return ""
	}
	return head + text
}
