// Package setup holds the commands that set coven up or describe it: init, config, schema, completion, help
// and version.
package setup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"gopkg.in/yaml.v3"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/config/check"
	"github.com/coven-run/coven/internal/config/detect"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/text/shellword"
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
		RunE: a.InProject(func(cmd *cobra.Command, p *project.Project, _ []string) error {
			return writeConfig(cmd.Context(), a, p)
		}),
	}
}

func writeConfig(ctx context.Context, a *cli.App, p *project.Project) error {
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
	checks, found := detect.Checks(p.Repo.Root)
	section, err := worktreeText(ctx, p.Repo)
	if err != nil {
		return fmt.Errorf("init: %w", err)
	}
	text, err := configText(checks, section)
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return fmt.Errorf("init: %w", err)
	}
	said, next := "no checks found: changes land untested", check.Change
	if len(found) > 0 {
		said, next = "checks found: "+strings.Join(found, ", "), `coven run -p "add a --version flag"`
	}
	if program, command := detect.Missing(checks); program != "" {
		said, next = said+"\n"+program+" is not installed: "+command+" cannot run", check.Change
	}
	if installs := detect.Setup(p.Repo.Root); len(installs) > 0 {
		said += "\nworktrees begin without installed dependencies; to install or link them: see worktree in .coven/config.yaml"
	}
	if tools, err := project.Packers(p.Repo.Root); err == nil && len(tools) > 0 { // coven doctor reports the error
		said += "\n" + tools[0].Does + " .coven, with the records of sessions; to leave it out: coven doctor --fix"
	}
	return a.Printf("wrote .coven/config.yaml; commit it to share it\n%s\n  next: %s\n", said, next)
}

func configText(checks []string, worktree string) (string, error) {
	if checks == nil {
		checks = []string{}
	}
	list, err := yaml.Marshal(map[string][]string{"checks": checks})
	if err != nil {
		return "", fmt.Errorf("init: %w", err)
	}
	return "# What coven does in this repository. All keys: coven help config\n\n" +
		"# The commands that must pass on the exact tree before it lands, in order.\n" + string(list) + worktree, nil
}

// worktreeText returns the section worktree: settings that make worktrees like the main checkout, and offers for
// dependencies.
func worktreeText(ctx context.Context, r *worktree.Repo) (string, error) {
	settings, offers := "", ""
	if dir, manifest := detect.Sibling(r.Root); dir != "" {
		settings += "  # " + manifest + " names " + dir + ", which worktrees find if they are beside it, too.\n  dir: ../{repo}-{task}\n"
	}
	switch sparse, err := worktree.MainIsSparse(ctx, r); {
	case err != nil:
		return "", err
	case sparse:
		settings += "  # Worktrees have the directories of your checkout, which is sparse.\n  sparse: main\n"
	}
	if detect.Submodules(r.Root) {
		settings += "  # Worktrees have the submodules of your checkout.\n  submodules: true\n"
	}
	if installs := detect.Setup(r.Root); len(installs) > 0 {
		list, err := yaml.Marshal(installs)
		if err != nil {
			return "", err
		}
		offers += "  # To install the dependencies in each worktree, remove the #:\n  # setup:\n" + indent(string(list), "  #   ")
	}
	if links := detect.Links(r.Root); len(links) > 0 {
		offers += "  # To show worktrees the dependencies of your checkout, which they cannot change, remove the #:\n" +
			"  # link: [" + strings.Join(links, ", ") + "]\n" + inPlaceText(r.Root, links)
	}
	switch {
	case settings != "":
		return "\nworktree:\n" + settings + offers, nil
	case offers != "":
		return "\n# worktree:\n" + offers, nil
	default:
		return "", nil
	}
}

// inPlaceText returns the comment about linked environments that would install packages from the main checkout.
func inPlaceText(root string, links []string) (text string) {
	for _, link := range links {
		var dirs []string
		for _, dir := range detect.InPlace(root, filepath.Join(root, link)) {
			if rel, err := filepath.Rel(root, dir); err == nil {
				dirs = append(dirs, rel)
			}
		}
		if len(dirs) > 0 {
			text += "  # " + link + " finds packages in your checkout, which checks cannot read: if you link it, begin the checks with\n" +
				"  # PYTHONPATH=" + shellword.Word(strings.Join(dirs, ":")) + "\n"
		}
	}
	return text
}

// indent puts a prefix before each line of a text.
func indent(text, prefix string) string {
	return prefix + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+prefix) + "\n"
}
