package setup

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/config"
	"github.com/coven-run/coven/internal/terminal"
)

// NewConfig returns the command coven config.
func NewConfig(a *cli.App) *cobra.Command {
	return cli.Group(&cobra.Command{
		Use:   "config",
		Short: "Show and change settings",
		Long: `Show and change settings. They come from your own file ($XDG_CONFIG_HOME/coven/config.yaml)
and the project's (.coven/config.yaml), which takes precedence; flags of a command take
precedence over both. coven help config describes every key.`,
	}, newConfigList(a), newConfigGet(a), newConfigSet(a), newConfigExplain(a))
}

// settings returns the settings of the user's directory.
func settings(a *cli.App, cmd *cobra.Command) ([]config.Setting, error) {
	files, err := a.SettingsFiles(cmd.Context())
	if err != nil {
		return nil, err
	}
	return files.Settings()
}

// setting returns one setting.
func setting(a *cli.App, cmd *cobra.Command, key string) (config.Setting, error) {
	all, err := settings(a, cmd)
	if err != nil {
		return config.Setting{}, err
	}
	return config.Find(all, key)
}

// completeKeys completes the keys of settings.
func completeKeys(_ *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var found []cobra.Completion
	for _, key := range config.Keys() {
		if len(args) == 0 && strings.HasPrefix(key, typed) {
			found = append(found, key)
		}
	}
	return found, cli.NoFiles
}

func newConfigList(a *cli.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List all settings and where each comes from",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := settings(a, cmd)
			if err != nil {
				return err
			}
			if asJSON {
				return a.PrintJSON(all)
			}
			return cli.PrintTable(a, "KEY\tVALUE\tFROM", all, func(s config.Setting) string {
				return fmt.Sprintf("%s\t%s\t%s", s.Key, terminal.Clip(s.Value.String(), 50), terminal.Printable(s.From))
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func newConfigGet(a *cli.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "get KEY",
		Short: "Print the value of a setting",
		Long:  "Print the value of a setting, and nothing else: text as it is, a list one item per line,\nanything else as YAML.",
		Args:  cobra.ExactArgs(1), ValidArgsFunction: completeKeys,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := setting(a, cmd, args[0])
			switch {
			case err != nil:
				return err
			case asJSON:
				return a.PrintJSON(s.Value)
			case s.Value.Plain() == "":
				return nil
			}
			return a.Printf("%s\n", terminal.PrintableLines(s.Value.Plain()))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func newConfigSet(a *cli.App) *cobra.Command {
	var r config.SetRequest
	cmd := &cobra.Command{
		Use:   "set KEY VALUE...",
		Short: "Change a setting in the project's file, or with --user in yours",
		Long: `Change a setting in .coven/config.yaml, or with --user in your own file. Everything else in
the file stays as it is, comments too. The value is YAML; a list takes one VALUE per
item. A file that would not be valid is not written.`,
		Example: `  coven config set run.max_tasks 5
  coven config set checks "go vet ./..." "go test ./..."
  coven config set --user budget "{usd: 5}"`,
		Args: cobra.MinimumNArgs(2), ValidArgsFunction: completeKeys,
		RunE: func(cmd *cobra.Command, args []string) error {
			r.Key, r.Values = args[0], args[1:]
			file, err := a.Set(cmd.Context(), r)
			if err != nil {
				return err
			}
			s, err := setting(a, cmd, r.Key)
			if err != nil {
				return err
			}
			if err := a.Printf("%s: %s = %s\n", terminal.Printable(file), s.Key, terminal.Printable(s.Value.String())); err != nil {
				return err
			}
			if !strings.HasPrefix(s.From, file+":") {
				return a.Printf("warning: %s takes precedence\n", terminal.Printable(s.From))
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&r.User, "user", false, "change your own file: it applies to all repositories")
	return cmd
}

func newConfigExplain(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "explain [KEY]",
		Short: "Explain a setting: what it does, its value, where it comes from",
		Args:  cobra.MaximumNArgs(1), ValidArgsFunction: completeKeys,
		RunE: func(cmd *cobra.Command, args []string) error {
			all, err := settings(a, cmd)
			if err != nil {
				return err
			}
			if len(args) == 1 {
				s, err := config.Find(all, args[0])
				if err != nil {
					return err
				}
				all = []config.Setting{s}
			}
			var b strings.Builder
			for _, s := range all {
				b.WriteString(explained(s))
			}
			return a.Printf("%s  more: coven help config\n", b.String())
		},
	}
}

// explained describes a setting.
func explained(s config.Setting) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s = %s (%s)\n  %s\n", s.Key, terminal.Printable(s.Value.String()), terminal.Printable(s.From), s.About)
	if len(s.Allowed) > 0 {
		fmt.Fprintf(&b, "  one of: %s\n", strings.Join(s.Allowed, ", "))
	}
	if s.From != config.FromDefault {
		fmt.Fprintf(&b, "  default: %s\n", terminal.Clip(s.Default.String(), 100))
	}
	return b.String()
}
