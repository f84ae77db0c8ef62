package plugin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/pluginregistry"
	"github.com/coven-run/coven/internal/process"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/internal/text/oneline"
	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/plugins"
	"github.com/coven-run/coven/plugins/builtin"
	"github.com/coven-run/coven/plugins/plugintest"
)

// testedJSON is the result of plugins test as --json prints it.
type testedJSON struct {
	Plugin  string              `json:"plugin"` // as given on the command line
	Kind    plugins.Kind        `json:"kind"`
	OK      bool                `json:"ok"`
	Results []plugintest.Result `json:"results"`
}

func newPluginsTest(a *cli.App) *cobra.Command {
	var kind, transcript string
	var with []string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "test FILE|NAME", Short: "Run the conformance tests on a plugin",
		Long: `Run the conformance tests on a plugin: starting and stopping, answers, cancellation,
memory growth, and what its kind requires. The exit code is 1 if a case fails.

An argument with a slash is a FILE: it runs without trust and outside a repository. A
NAME is a plugin of coven plugins list; a plugin of the repository runs only if you
trust it. Reviewers get a generated repository, never yours.`,
		Example: `  coven plugins test ./coven-reviewer-style
  coven plugins test ./build/style --kind reviewer --with words=TODO
  coven plugins test coven-reviewer-style --json`,
		Args: cobra.ExactArgs(1), ValidArgsFunction: completePlugin(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			options, err := testOptions(a, with, transcript)
			if err != nil {
				return err
			}
			if kind != "" && !slices.Contains(plugins.Kinds(), plugins.Kind(kind)) {
				return exit.Usagef("coven plugins test --help", "--kind %q is not one of %s", kind, strings.Join(kindNames(), ", "))
			}
			return testPlugin(cmd.Context(), a, args[0], plugins.Kind(kind), options, asJSON)
		},
	}
	f := cmd.Flags()
	f.StringVar(&kind, "kind", "", "the `KIND`, if the file is not named coven-KIND-NAME: "+strings.Join(kindNames(), ", "))
	f.StringArrayVar(&with, "with", nil, "an option `KEY=VALUE` for a reviewer or arbiter, or of the pull request for a forge: host, path, number, api (repeatable)")
	f.StringVar(&transcript, "transcript", "", "for a provider: a `FILE` with recorded output of its CLI")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	cli.CompleteFlag(cmd, "kind", cli.CompleteList(kindNames()...))
	return cmd
}

func kindNames() []string {
	var names []string
	for _, k := range plugins.Kinds() {
		names = append(names, string(k))
	}
	return names
}

// testOptions returns the options of the suite from the command line.
func testOptions(a *cli.App, with []string, transcript string) (plugintest.Options, error) {
	o := plugintest.Options{}
	for _, option := range with {
		key, value, ok := strings.Cut(option, "=")
		if !ok || key == "" {
			return o, exit.Usagef("coven plugins test --help", "--with %q is not KEY=VALUE", option)
		}
		if o.With == nil {
			o.With = map[string]string{}
		}
		o.With[key] = value
	}
	if transcript != "" {
		file, err := a.Absolute(transcript)
		if err != nil {
			return o, err
		}
		if o.Transcript, err = os.ReadFile(file); err != nil {
			return o, exit.Usagef("ls -l "+shellword.Word(transcript), "read the transcript: %w", err)
		}
	}
	return o, nil
}

// testPlugin runs the suite and prints the result of each case.
func testPlugin(ctx context.Context, a *cli.App, which string, kind plugins.Kind, o plugintest.Options, asJSON bool) error {
	binary, kind, err := toTest(ctx, a, which, kind, &o)
	if err != nil {
		return err
	}
	self, err := a.Self()
	if err != nil {
		return fmt.Errorf("find coven's own executable: %w", err)
	}
	launcher, err := process.NewLauncher(self, "exec")
	if err != nil {
		return err
	}
	o.Start = launcher.Command
	var unsaid error
	if !asJSON {
		o.Report = func(r plugintest.Result) { unsaid = errors.Join(unsaid, printCase(a, r)) }
	}
	results, err := plugintest.Run(ctx, binary, kind, o)
	if err != nil || unsaid != nil {
		return errors.Join(err, unsaid)
	}
	if asJSON {
		err = a.PrintJSON(testedJSON{which, kind, plugintest.OK(results), results})
	} else {
		err = printSummary(a, results)
	}
	if err == nil && !plugintest.OK(results) {
		err = exit.Status(exit.Failed)
	}
	return err
}

// toTest returns the program to test: a file, or a plugin that may run here.
func toTest(ctx context.Context, a *cli.App, which string, kind plugins.Kind, o *plugintest.Options) (string, plugins.Kind, error) {
	if strings.ContainsRune(which, filepath.Separator) {
		return fileToTest(a, which, kind)
	}
	proj, all, err := allPlugins(ctx, a, (*pluginregistry.Registry).List)
	if err != nil {
		return "", "", err
	}
	all = slices.DeleteFunc(all, func(p pluginregistry.Plugin) bool {
		return p.State == pluginregistry.Hidden || !project.HasName(p, which) || kind != "" && p.Kind != kind
	})
	switch {
	case len(all) == 0:
		return "", "", exit.Failedf("coven plugins list", "there is no plugin %q (for a file: %s)", which, "./"+which)
	case len(all) > 1:
		return "", "", exit.Usagef("coven plugins test "+shellword.Word(all[0].ID()), "there are several plugins %q: %s", which, ids(all))
	}
	r, err := proj.Registry()
	if err != nil {
		return "", "", err
	}
	found, err := r.Resolve(all[0].Kind, all[0].Name)
	if err != nil {
		return "", "", err
	}
	o.Args, o.Capabilities = found.Argv[1:], found.Capabilities
	if found.BuiltIn {
		o.Env = builtin.Credentials(plugins.Need{Kind: all[0].Kind, Name: all[0].Name}, a.Environ(), proj.ProviderSettings())
	}
	return found.Argv[0], all[0].Kind, nil
}

func ids(all []pluginregistry.Plugin) string {
	var names []string
	for _, p := range all {
		names = append(names, p.ID())
	}
	return strings.Join(names, ", ")
}

// fileToTest returns a file given by the user.
func fileToTest(a *cli.App, which string, kind plugins.Kind) (string, plugins.Kind, error) {
	file, err := a.Absolute(which)
	if err != nil {
		return "", "", err
	}
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", "", exit.Failedf("ls -l "+shellword.Word(filepath.Dir(which)), "there is no file %s", which)
	case err != nil:
		return "", "", exit.Usagef("ls -l "+shellword.Word(which), "%w", err)
	case !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0:
		return "", "", exit.Usagef("chmod +x "+shellword.Word(which), "%s is not an executable file", which)
	}
	if kind == "" {
		if kind, err = plugintest.KindOf(file); err != nil {
			return "", "", exit.Usagef("coven plugins test --kind reviewer "+shellword.Word(which), "%w", err)
		}
	}
	return file, kind, nil
}

// printCase prints a case. For a failure it prints the requirement of the contract.
func printCase(a *cli.App, r plugintest.Result) error {
	switch r.Status {
	case plugintest.Failed:
		return a.Printf("FAIL  %s: %s\n      %s\n", r.Name, r.Demand, terminal.Printable(oneline.Of(r.Detail)))
	case plugintest.Skipped:
		return a.Printf("skip  %s: %s\n", r.Name, terminal.Printable(oneline.Of(r.Detail)))
	}
	return a.Printf("ok    %s\n", r.Name)
}

func printSummary(a *cli.App, results []plugintest.Result) error {
	counts := map[plugintest.Status]int{}
	for _, r := range results {
		counts[r.Status]++
	}
	return a.Printf("%s: %d passed, %d failed, %d skipped\n",
		oneline.Count(len(results), "case"), counts[plugintest.Passed], counts[plugintest.Failed], counts[plugintest.Skipped])
}

// completePlugin completes plugins, or files if a path is typed.
func completePlugin(a *cli.App) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) == 0 && strings.ContainsRune(typed, filepath.Separator) {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return a.CompleteOne(pluginNames)(cmd, args, typed)
	}
}
