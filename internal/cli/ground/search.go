package ground

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/search"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/internal/text/oneline"
)

// searchOptions are the flags of coven ground search.
type searchOptions struct {
	app *cli.App

	selected        selection
	ranked          bool
	includeSessions bool
	limit           int
	asJSON          bool
}

func newSearch(a *cli.App) *cobra.Command {
	o := &searchOptions{app: a}
	cmd := &cobra.Command{
		Use: "search TEXT", Short: "Find text in the files of a source",
		Long: `Find text in the files of a source. TEXT is a regular expression (Go's syntax, line by
line). With --ranked, it is words or identifiers, and the files that answer it best come
first: they are ranked with BM25 over the words and identifiers of their text, headings and
paths, each file with its best passage; with search.embeddings in your configuration, also by
their meaning. The index for that is a cache in
$XDG_CACHE_HOME/coven/search, and always as new as the files.`,
		Example: `  coven ground search 'func \w+Handler'
  coven ground search --ranked "where is the rate limit handled"
  coven ground search --include-sessions migration`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("limit") && o.limit < 1 {
				return exit.Usagef("coven ground search --help", "--limit must be at least 1")
			}
			p, err := a.Open(cmd.Context())
			if err != nil {
				return err
			}
			if o.ranked {
				return o.query(cmd.Context(), p, args[0])
			}
			return o.search(cmd.Context(), p, args[0])
		},
	}
	o.selected.add(cmd)
	cmd.Flags().BoolVar(&o.ranked, "ranked", false, "find the files that answer TEXT best")
	cmd.Flags().BoolVar(&o.includeSessions, "include-sessions", false, "search the records of sessions, too")
	cmd.Flags().IntVar(&o.limit, "limit", 0, fmt.Sprintf("show at most `N` lines (%d), or files with --ranked (%d)", search.DefaultLines, search.DefaultLimit))
	cmd.Flags().BoolVar(&o.asJSON, "json", false, "print JSON")
	return cmd
}

// A place is a source with the options of its search.
type place struct {
	source
	wanted search.QueryOptions
}

// places returns the places to search.
func (o *searchOptions) places(p *project.Project) ([]place, error) {
	first, fields, err := o.selected.open(p)
	if err != nil {
		return nil, err
	}
	all := []place{{first, search.QueryOptions{Limit: o.limit, Keep: first.keep(fields)}}}
	if o.includeSessions && first.name != dataStore {
		all = append(all, place{sessions(p), search.QueryOptions{Limit: o.limit}})
	}
	return all, nil
}

// lineJSON is a line as ground search --json prints it.
type lineJSON struct {
	Source string `json:"source"`
	search.Line
}

func (o *searchOptions) search(ctx context.Context, p *project.Project, expression string) error {
	places, err := o.places(p)
	if err != nil {
		return err
	}
	out, more := []lineJSON{}, false
	for _, at := range places {
		lines, cut, err := at.Search(ctx, expression, at.wanted)
		if err != nil {
			return err
		}
		more = more || cut
		for _, line := range lines {
			line.Path = at.prefix + line.Path
			out = append(out, lineJSON{at.name, line})
		}
	}
	if more {
		fmt.Fprintln(o.app.Err, "more lines match; --limit shows them") //nolint:errcheck // standard error
	}
	if o.asJSON {
		return o.app.PrintJSON(out)
	}
	var text strings.Builder
	for _, line := range out {
		fmt.Fprintf(&text, "%s:%d: %s\n", terminal.Printable(line.Path), line.Line.Line, terminal.Printable(line.Text))
	}
	return o.app.Printf("%s", text.String())
}

// hitJSON is a file as ground search --ranked --json prints it.
type hitJSON struct {
	Source string `json:"source"`
	search.Hit
}

func (o *searchOptions) query(ctx context.Context, p *project.Project, query string) error {
	places, err := o.places(p)
	if err != nil {
		return err
	}
	var answers [][]hitJSON
	for _, at := range places {
		at.wanted.Warn = func(err error) {
			fmt.Fprintf(o.app.Err, "warning: ranked by words only: %s\n", terminal.Printable(oneline.Of(err.Error()))) //nolint:errcheck // standard error
		}
		hits, err := at.Query(ctx, query, at.wanted)
		if err != nil {
			return err
		}
		var answer []hitJSON
		for _, hit := range hits {
			hit.Path = at.prefix + hit.Path
			answer = append(answer, hitJSON{at.name, hit})
		}
		answers = append(answers, answer)
	}
	out := inTurn(answers)
	if o.asJSON {
		return o.app.PrintJSON(out)
	}
	var text strings.Builder
	for _, hit := range out {
		fmt.Fprintf(&text, "%s:%d\n", terminal.Printable(hit.Path), hit.Line)
		for line := range strings.Lines(hit.Snippet) {
			shown := "    " + terminal.Printable(strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "\t", "    "))
			text.WriteString(strings.TrimRight(shown, " ") + "\n")
		}
	}
	return o.app.Printf("%s", text.String())
}

// inTurn merges answers: the best hit of each, then the second best, and so on. The scores of different
// sources cannot be compared.
func inTurn(answers [][]hitJSON) []hitJSON {
	all := []hitJSON{}
	for i, more := 0, true; more; i++ {
		more = false
		for _, answer := range answers {
			if i < len(answer) {
				all, more = append(all, answer[i]), true
			}
		}
	}
	return all
}
