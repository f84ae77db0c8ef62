package setup

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/config"
	"github.com/coven-run/coven/internal/config/schema"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/pluginregistry"
	"github.com/coven-run/coven/internal/secret"
	"github.com/coven-run/coven/internal/tool/command"
	"github.com/coven-run/coven/runner/workflowtest"
)

// SchemaKinds returns the kinds of files that have a schema.
func SchemaKinds() []SchemaKind {
	return []SchemaKind{
		{"config", ".coven/config.yaml", config.Schema},
		{"grimoire", ".coven/grimoires/NAME.yaml", grimoires.Schema},
		{"grimoire-matchers", ".coven/grimoire-matchers.yaml", grimoires.MatchersSchema},
		{"grimoire-test", ".coven/grimoires/NAME.test.yaml", workflowtest.Schema},
		{"plugins-lock", pluginregistry.LockFile, pluginregistry.LockSchema},
		{"tool", command.Dir + "/NAME.yaml", command.Schema},
		{"secrets", ".coven/secrets.yaml", secret.Schema},
	}
}

// SchemaKind is a kind of file that has a schema.
type SchemaKind struct {
	Name, file string
	Schema     func() *schema.Schema
}

// NewSchema returns the command coven schema.
func NewSchema(a *cli.App) *cobra.Command {
	var names []string
	for _, k := range SchemaKinds() {
		names = append(names, k.Name)
	}
	var file string
	cmd := &cobra.Command{
		Use:   "schema [KIND]",
		Short: "Print the JSON Schema of a file format, for editors",
		Long: `Print the JSON Schema of a file format, generated from coven's own reader. An editor
with the YAML language server validates a file and completes its keys if the file
begins with the line

  # yaml-language-server: $schema=PATH

Without KIND: the kinds.`,
		Example: `  coven schema grimoire -o .coven/grimoire.schema.json
  # and as the first line of .coven/grimoires/NAME.yaml:
  # yaml-language-server: $schema=../grimoire.schema.json`,
		Args: cobra.MaximumNArgs(1), ValidArgs: names,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				for _, k := range SchemaKinds() {
					if err := a.Printf("%-18s %s\n", k.Name, k.file); err != nil {
						return err
					}
				}
				return nil
			}
			for _, k := range SchemaKinds() {
				if k.Name == args[0] {
					text, err := schema.Write(k.Schema(), "coven: "+k.file)
					if err != nil {
						return err
					}
					return writeSchema(a, file, text)
				}
			}
			return exit.Failedf("coven schema", "there is no schema of %q (known: %s)", args[0], strings.Join(names, ", "))
		},
	}
	cmd.Flags().StringVarP(&file, "output", "o", "", "write the schema to `FILE`")
	return cmd
}

// writeSchema writes a text to a file or prints it.
func writeSchema(a *cli.App, file string, text []byte) error {
	if file == "" {
		return a.Printf("%s", text)
	}
	file, err := a.Absolute(file)
	if err != nil {
		return err
	}
	if err := regularfile.Replace(file, text, 0o644); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return nil
}
