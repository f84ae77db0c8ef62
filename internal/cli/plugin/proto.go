package plugin

import (
	"errors"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project/scaffold"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/internal/text/shellword"
)

func newPluginsProto(a *cli.App) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use: "proto DIR", Short: "Write the .proto files of the plugin protocol",
		Long: `Write the .proto files of the plugin protocol to DIR, for a plugin in a language other
than Go: the contracts (coven/plugin/v1/*.proto), the services of hashicorp/go-plugin
(goplugin.proto) and the health service (health.proto). If a file exists and differs,
nothing is written without --force.

coven help plugin describes the protocol; coven plugins new writes a whole project.`,
		Example: "  coven plugins proto proto\n" +
			"  protoc -I proto --python_out=. $(cd proto && find . -name '*.proto')",
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			files, err := scaffold.Protocol()
			if err != nil {
				return err
			}
			return writeFiles(a, args[0], files, force)
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "overwrite files that differ")
	return cmd
}

// writeFiles writes files to a directory given by the user, and lists them.
func writeFiles(a *cli.App, dir string, files []scaffold.File, force bool) error {
	at, err := a.Absolute(dir)
	if err != nil {
		return err
	}
	written, err := scaffold.Write(at, files, force)
	if differ := (*scaffold.DifferError)(nil); errors.As(err, &differ) {
		return exit.Usagef("coven plugins proto --force "+shellword.Word(dir), "%w", err)
	}
	if err != nil {
		return err
	}
	for _, w := range written {
		said := "wrote      "
		if w.Unchanged {
			said = "unchanged  "
		}
		if err := a.Printf("%s%s\n", said, terminal.Printable(filepath.Join(dir, filepath.FromSlash(w.Path)))); err != nil {
			return err
		}
	}
	return nil
}
