package plugin

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/plugins"
	"github.com/coven-run/coven/plugins/model"
)

// modelJSON is a model as plugins models --json prints it. Unknown values are omitted.
type modelJSON struct {
	ID        string      `json:"id"`
	Window    int         `json:"window,omitempty"`     // tokens
	MaxOutput int         `json:"max_output,omitempty"` // tokens
	Prices    *pricesJSON `json:"prices,omitempty"`
}

// pricesJSON holds prices in US dollars per million tokens.
type pricesJSON struct {
	Input      float64 `json:"input"`
	Output     float64 `json:"output"`
	CacheRead  float64 `json:"cache_read"`
	CacheWrite float64 `json:"cache_write"`
}

func newPluginsModels(a *cli.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "models NAME", Short: "List the models of a model plugin, with context windows and prices",
		Long: `Start a model plugin and list the models of its API: the context window and the longest
answer in tokens, and the prices in US dollars per million tokens. A dash is unknown.`,
		Example: `  coven plugins models anthropic
  OPENAI_BASE_URL=http://localhost:11434/v1 coven plugins models openai`,
		Args: cobra.ExactArgs(1), ValidArgsFunction: a.CompleteOne(modelPlugins),
		RunE: a.InProject(func(cmd *cobra.Command, p *project.Project, args []string) error {
			c, err := control.New(p)
			if err != nil {
				return err
			}
			defer c.Close()
			models, err := c.Models(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if asJSON {
				return a.PrintJSON(modelsJSON(models))
			}
			return printModels(a, models)
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// modelPlugins returns the model plugins of a project.
func modelPlugins(_ context.Context, p *project.Project, _ []string) []string {
	r, err := p.Registry()
	if err != nil {
		return nil
	}
	return r.Names(plugins.KindModel)
}

func modelsJSON(models []model.Info) []modelJSON {
	list := []modelJSON{}
	for _, m := range models {
		one := modelJSON{ID: m.ID, Window: m.Window, MaxOutput: m.MaxOutput}
		if p := m.Prices; p != nil {
			one.Prices = &pricesJSON{p.Input, p.Output, p.CacheRead, p.CacheWrite}
		}
		list = append(list, one)
	}
	return list
}

func printModels(a *cli.App, models []model.Info) error {
	return cli.PrintTable(a, "MODEL\tWINDOW\tANSWER\tINPUT\tOUTPUT", models, func(m model.Info) string {
		input, output := "-", "-"
		if p := m.Prices; p != nil {
			input, output = price(p.Input), price(p.Output)
		}
		return fmt.Sprintf("%s\t%s\t%s\t%s\t%s", terminal.Printable(m.ID), tokens(m.Window), tokens(m.MaxOutput), input, output)
	})
}

func tokens(n int) string {
	if n == 0 {
		return "-"
	}
	return strconv.Itoa(n)
}

func price(usd float64) string { return "$" + strconv.FormatFloat(usd, 'f', -1, 64) }
