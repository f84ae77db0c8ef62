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
	"github.com/coven-run/coven/internal/config/convert"
	"github.com/coven-run/coven/internal/config/detect"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/internal/text/oneline"
	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/worktree"
)

// NewInit returns the command coven init.
func NewInit(a *cli.App) *cobra.Command {
	from := ""
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Write .coven/config.yaml with this repository's checks",
		Long: `Write .coven/config.yaml. coven works without it; the file fixes the checks that a
change must pass before it lands, instead of detecting them on each run.

--from claude-squad takes over the provider, the model and the branches of your claude-squad, and names the
settings that coven does not have.`,
		Args: cobra.NoArgs,
		RunE: a.InProject(func(cmd *cobra.Command, p *project.Project, _ []string) error {
			other, err := otherSettings(a, from)
			if err != nil {
				return err
			}
			return writeConfig(cmd.Context(), a, p, other)
		}),
	}
	cmd.Flags().StringVar(&from, "from", "", "take over settings of the `PROGRAM` claude-squad")
	cli.CompleteFlag(cmd, "from", cli.CompleteList(claudeSquad))
	return cmd
}

const claudeSquad = "claude-squad"

// maxOther limits the size of the settings of another program.
const maxOther = 1 << 20

// otherSettings returns the settings of another program. They are empty if it is "".
func otherSettings(a *cli.App, from string) (convert.Settings, error) {
	switch from {
	case "":
		return convert.Settings{}, nil
	case claudeSquad:
	case "vibe-kanban":
		return convert.Settings{}, exit.Usagef("coven help config", "vibe-kanban keeps its scripts in a database of its own: copy them from its settings")
	default:
		return convert.Settings{}, exit.Usagef("coven init --help", "coven does not read settings of %q%s", from, cli.Suggest(from, []string{claudeSquad}))
	}
	file := filepath.Join(a.Getenv("HOME"), filepath.FromSlash(convert.ClaudeSquadFile))
	text, err := regularfile.Read(file, maxOther)
	if err != nil {
		return convert.Settings{}, exit.Failedf("coven init", "read the settings of claude-squad: %w", err)
	}
	found, err := convert.ClaudeSquad(text, a.Getenv("USER"))
	if err != nil {
		return convert.Settings{}, exit.Failedf("coven init", "%s: %w", file, err)
	}
	return found, nil
}

func writeConfig(ctx context.Context, a *cli.App, p *project.Project, other convert.Settings) error {
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
	section, err := worktreeText(ctx, p.Repo, other.Branch)
	if err != nil {
		return fmt.Errorf("init: %w", err)
	}
	text, err := configText(checks, section, other)
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
	for _, left := range other.Left {
		said += "\nnot taken over: " + terminal.Printable(oneline.Of(left))
	}
	return a.Printf("wrote .coven/config.yaml; commit it to share it\n%s\n  next: %s\n", said, next)
}

func configText(checks []string, worktree string, other convert.Settings) (string, error) {
	if checks == nil {
		checks = []string{}
	}
	list, err := yaml.Marshal(map[string][]string{"checks": checks})
	if err != nil {
		return "", fmt.Errorf("init: %w", err)
	}
	text := "# What coven does in this repository. All keys: coven help config\n\n" +
		"# The commands that must pass on the exact tree before it lands, in order.\n" + string(list)
	for _, setting := range [][2]string{{"provider", other.Provider}, {"default_model", other.Model}} {
		if setting[1] == "" {
			continue
		}
		line, err := yaml.Marshal(map[string]string{setting[0]: setting[1]})
		if err != nil {
			return "", fmt.Errorf("init: %w", err)
		}
		text += string(line)
	}
	return text + worktree, nil
}

// worktreeText returns the section worktree: settings that make worktrees like the main checkout, and offers for
// dependencies. branch is the template of branches, or "".
func worktreeText(ctx context.Context, r *worktree.Repo, branch string) (string, error) {
	settings, offers := "", ""
	if branch != "" {
		line, err := yaml.Marshal(map[string]string{"branch": branch})
		if err != nil {
			return "", err
		}
		settings += "  " + string(line)
	}
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
