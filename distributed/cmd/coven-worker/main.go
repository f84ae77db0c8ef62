// Command coven-worker runs sessions of coven on this machine that a Temporal server hands out, and hands out those of this machine.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newRoot().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "coven-worker:", err)
		os.Exit(exitCode(err))
	}
}

// exitCode returns the exit code of an error: 2 for a mistake of the command line, like that of coven.
func exitCode(err error) int {
	if errors.As(err, new(usageError)) {
		return 2
	}
	return 1
}

// usageError is a mistake of the command line.
type usageError struct{ error }

// newRoot returns the command coven-worker.
func newRoot() *cobra.Command {
	w := &work{}
	root := &cobra.Command{
		Use:   "coven-worker --on HOST:PORT [-j N]",
		Short: "Run sessions of coven on this machine, which other machines hand out",
		Long: `Run sessions that other machines hand out with coven run --on, in this clone of the repository.
The server at HOST:PORT is Temporal; TEMPORAL_NAMESPACE, TEMPORAL_TLS_CLIENT_CERT_PATH,
TEMPORAL_TLS_CLIENT_KEY_PATH, TEMPORAL_API_KEY and the other settings of Temporal's clients apply.

Whoever can start workflows on the server, and push to the remote, can run commands here as you.

Ctrl-C or SIGTERM once: take nothing new, and wait for the running sessions, at most --drain.
Twice: interrupt them; other machines continue them.`,
		Example: `  coven worker --on temporal.example.com:7233 -j 4
  coven worker --on temporal.example.com:7233 --label gpu`,
		Args: cobra.NoArgs, SilenceErrors: true, SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error { return w.run(cmd.Context()) },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	on := root.PersistentFlags().String("on", "", "the server's address, as `HOST:PORT` (default: TEMPORAL_ADDRESS)")
	w.on = on
	w.flags(root.Flags())
	root.AddCommand(newDesk(on), newList(on), newNamespace(on))
	root.CompletionOptions.DisableDefaultCmd = true
	return root
}

// output runs a program in a directory, and returns the first line of its output.
func output(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = dir
	out, err := cmd.Output()
	failed := (*exec.ExitError)(nil)
	if errors.As(err, &failed) && len(failed.Stderr) > 0 {
		return "", fmt.Errorf("%s: %s", args[0], firstLine(string(failed.Stderr)))
	}
	return firstLine(string(out)), err
}
