// Package ground holds the commands that find files and text in the repository and in the records of
// sessions, like the tools of agents.
package ground

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/search"
	"github.com/coven-run/coven/internal/terminal"
)

// The sources.
const (
	codeRepo  = "code_repo"
	dataStore = "data_store"
)

// NewGround returns the command coven ground.
func NewGround(a *cli.App) *cobra.Command {
	return cli.Group(&cobra.Command{
		Use: "ground", Short: "Find files and text in the repository and in sessions",
		Long: `Find files and text in the repository and in sessions. There are two sources: code_repo,
the files of the checkout that git does not ignore, without those below .coven; and
data_store, the Markdown files of sessions. Files that are binary or larger than 1 MiB are
listed, but their text is not searched.`,
	}, newList(a), newFiles(a), newSearch(a))
}

// A source is a set of files that can be searched.
type source struct {
	*search.Index
	name   string
	prefix string // of its paths, relative to the top of the repository
}

func repository(p *project.Project) source { return source{p.Search(), codeRepo, ""} }

func sessions(p *project.Project) source {
	return source{p.SearchSessions(), dataStore, search.SessionsDir + "/"}
}

// sourceJSON is a source as ground list --json prints it.
type sourceJSON struct {
	Name  string `json:"name"`
	Root  string `json:"root"`
	Files int    `json:"files"`
}

func newList(a *cli.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the sources, with the number of their files", Args: cobra.NoArgs,
		RunE: a.InProject(func(cmd *cobra.Command, p *project.Project, _ []string) error {
			var all []sourceJSON
			for _, s := range []source{repository(p), sessions(p)} {
				files, err := s.Files(cmd.Context(), "")
				if err != nil {
					return err
				}
				all = append(all, sourceJSON{s.name, s.Root, len(files)})
			}
			if asJSON {
				return a.PrintJSON(all)
			}
			return cli.PrintTable(a, "SOURCE\tFILES\tROOT", all, func(s sourceJSON) string {
				return fmt.Sprintf("%s\t%d\t%s", s.Name, s.Files, terminal.Printable(s.Root))
			})
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// selection holds the flags of files and search that select a source.
type selection struct {
	source string
	where  []string
}

func (s *selection) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.source, "source", codeRepo, "the `SOURCE`: code_repo or data_store")
	cmd.Flags().StringArrayVar(&s.where, "where", nil, "only session files whose frontmatter has `KEY=VALUE`; selects data_store (repeatable)")
}

// open returns the selected source, and the frontmatter fields that its files must have.
func (s *selection) open(p *project.Project) (source, map[string]string, error) {
	fields := map[string]string{}
	for _, condition := range s.where {
		key, value, ok := strings.Cut(condition, "=")
		if !ok || key == "" {
			return source{}, nil, exit.Usagef("coven ground files --where status=completed", "--where %q is not KEY=VALUE", condition)
		}
		fields[key] = value
	}
	switch {
	case s.source == dataStore || len(fields) > 0:
		return sessions(p), fields, nil
	case s.source == codeRepo:
		return repository(p), nil, nil
	}
	return source{}, nil, exit.Usagef("coven ground list", "there is no source %q", s.source)
}

// fileJSON is a file as ground files --json prints it.
type fileJSON struct {
	Source string `json:"source"`
	Path   string `json:"path"`
}

func newFiles(a *cli.App) *cobra.Command {
	var asJSON bool
	var selected selection
	cmd := &cobra.Command{
		Use: "files [GLOB]", Short: "List the files of a source",
		Long: `List the files of a source, all or those that match a glob. A glob without a slash matches
names in all directories; ** matches any number of directories.`,
		Example: `  coven ground files '*.go'
  coven ground files 'docs/**/*.md'
  coven ground files --where status=failed`,
		Args: cobra.MaximumNArgs(1),
		RunE: a.InProject(func(cmd *cobra.Command, p *project.Project, args []string) error {
			from, fields, err := selected.open(p)
			if err != nil {
				return err
			}
			files, err := from.Files(cmd.Context(), strings.Join(args, ""))
			if err == nil {
				files, err = from.With(files, fields)
			}
			if err != nil {
				return err
			}
			out := []fileJSON{}
			var text strings.Builder
			for _, file := range files {
				out = append(out, fileJSON{from.name, from.prefix + file})
				text.WriteString(terminal.Printable(from.prefix+file) + "\n")
			}
			if asJSON {
				return a.PrintJSON(out)
			}
			return a.Printf("%s", text.String())
		}),
	}
	selected.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// keep returns a filter for the files of a source that have the fields, or nil if there are none.
func (s source) keep(fields map[string]string) func(string) bool {
	if len(fields) == 0 {
		return nil
	}
	return func(path string) bool {
		kept, err := s.With([]string{path}, fields)
		return err == nil && len(kept) == 1
	}
}
