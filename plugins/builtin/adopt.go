package builtin

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/coven-run/coven/internal/regularfile"
)

// maxConversation limits the size of a file of a conversation that is adopted, in bytes.
const maxConversation = 256 << 20

// AdoptConversation copies the files of a conversation, whose names contain its ID, from the
// user's directory of a CLI to the CLI's directory of a task: earlier versions of coven let the
// CLI keep conversations in the user's directory.
//
// It does so only if the task has no such directory yet. In one that exists, an agent may have
// left links for coven to write through; and it may have chosen the ID, to read a conversation
// of the user.
func AdoptConversation(provider, conversation, stateDir string, getenv func(string) string) error {
	cli, ok := CLIOf(provider)
	from := getenv(cli.homeVar)
	if home := getenv("HOME"); from == "" && filepath.IsAbs(home) {
		from = filepath.Join(home, cli.home)
	}
	if _, err := os.Lstat(stateDir); !ok || !filepath.IsAbs(from) || conversation == "" || !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := adopt(from, conversation, stateDir); err != nil {
		return fmt.Errorf("adopt the conversation %s: %w", conversation, err)
	}
	return nil
}

// adopt makes stateDir from the files whose names contain a text: whole or not at all.
func adopt(from, text, stateDir string) error {
	if err := os.MkdirAll(filepath.Dir(stateDir), 0o755); err != nil {
		return err
	}
	making, err := os.MkdirTemp(filepath.Dir(stateDir), ".adopt-")
	if err != nil {
		return err
	}
	err = eachNamed(from, text, func(file string) error {
		rel, err := filepath.Rel(from, file)
		if err != nil {
			return err
		}
		return copyTo(filepath.Join(making, rel), file)
	})
	if err == nil {
		err = os.Rename(making, stateDir)
	}
	if errors.Is(err, fs.ErrExist) { // another agent of the task was faster
		return os.RemoveAll(making)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(making))
	}
	return nil
}

// eachNamed calls visit for the regular files below dir whose name contains a text. Directories
// that cannot be read are skipped.
func eachNamed(dir, text string, visit func(file string) error) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || !strings.Contains(entry.Name(), text) {
			return nil //nolint:nilerr // what cannot be read has no conversation for coven
		}
		return visit(path)
	})
}

func copyTo(to, from string) error {
	info, err := os.Stat(from)
	if err != nil || info.Size() > maxConversation {
		return errors.Join(err, os.MkdirAll(filepath.Dir(to), 0o700))
	}
	raw, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	return regularfile.Replace(to, raw, 0o600)
}
