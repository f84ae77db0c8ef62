package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/task"
)

// scissors begins the help below a text that is edited.
const scissors = "# ------------------------ >8 ------------------------"

// Draft is a text for the user to edit.
type Draft struct {
	Text    string // to begin with
	Help    string // lines that explain the text
	Instead string // the command that needs no editor
}

// EditText lets the user edit a text in their editor, and passes the text to use. An empty text cancels. If use fails, the
// text is kept in a file, and the error names it.
func (a *App) EditText(ctx context.Context, p *project.Project, d Draft, use func(text string) error) error {
	if !a.Interactive {
		return exit.Usagef(d.Instead, "there is no terminal for an editor: give the text on the command line, or with - on standard input")
	}
	file, err := d.write()
	if err != nil {
		return fmt.Errorf("write the text to edit: %w", err)
	}
	text, err := a.edited(ctx, p, file)
	if err == nil && text == "" {
		return errors.Join(exit.Failedf(d.Instead, "cancelled: the text is empty"), os.Remove(file))
	}
	if err == nil {
		err = use(text)
	}
	if err == nil || exit.IsSilent(err) {
		return errors.Join(err, os.Remove(file))
	}
	return fmt.Errorf("%w\nthe text is in %s", err, file)
}

// write writes a new file with the text and the help below it.
func (d Draft) write() (path string, err error) {
	f, err := os.CreateTemp("", "coven-*.md")
	if err != nil {
		return "", err
	}
	var help strings.Builder
	for line := range strings.Lines(d.Help + "\nAn empty text cancels. This line, and all below it, are ignored.") {
		help.WriteString("# " + line)
	}
	_, err = fmt.Fprintf(f, "%s\n\n%s\n%s\n", d.Text, scissors, help.String())
	return f.Name(), errors.Join(err, f.Close())
}

// OpenInEditor opens a directory in $VISUAL or $EDITOR. It reports false if neither is set, or if there is no terminal.
func (a *App) OpenInEditor(ctx context.Context, dir string) (opened bool, err error) {
	editor := a.editorSet()
	if !a.Interactive || editor == "" {
		return false, nil
	}
	return true, a.runEditor(ctx, editor, dir)
}

// runEditor runs an editor for a file or a directory until it ends.
func (a *App) runEditor(ctx context.Context, editor, path string) error {
	cmd := exec.CommandContext(ctx, "sh", "-c", "trap : INT; "+editor+` "$@"`, "sh", path) // Ctrl-C is for the editor alone
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Env = a.In, os.Stdout, os.Stderr, a.Environ()
	a.paging.Add(1)
	defer a.endPaging() // an editor may save and leave on a Ctrl-C
	if err := a.onTerminal(cmd); err != nil {
		return cmp.Or(context.Cause(ctx), exit.Failedf("export EDITOR=vi", "the editor failed: %s: %w", editor, err))
	}
	return nil
}

// edited returns the text of a file after the user has edited it.
func (a *App) edited(ctx context.Context, p *project.Project, file string) (string, error) {
	editor, err := a.editor(ctx, p)
	if err != nil {
		return "", err
	}
	if err := a.runEditor(ctx, editor, file); err != nil {
		return "", err
	}
	data, err := regularfile.Read(file, 2*task.MaxText) // with the help
	if err != nil {
		return "", fmt.Errorf("read the edited text: %w", err)
	}
	if i := bytes.Index(append([]byte("\n"), data...), []byte("\n"+scissors)); i >= 0 {
		data = data[:i]
	}
	return strings.TrimRight(strings.TrimLeft(string(data), "\r\n"), " \t\r\n"), nil
}

// editor returns the user's editor: $VISUAL, $EDITOR or core.editor of git.
func (a *App) editor(ctx context.Context, p *project.Project) (string, error) {
	if set := a.editorSet(); set != "" {
		return set, nil
	}
	set, err := p.Repo.Editor(ctx)
	return cmp.Or(set, "vi"), err
}

func (a *App) editorSet() string {
	return cmp.Or(strings.TrimSpace(a.Getenv("VISUAL")), strings.TrimSpace(a.Getenv("EDITOR")))
}
