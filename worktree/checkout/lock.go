package checkout

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/coven-run/coven/internal/file/regularfile"
)

// lockTries limits the attempts to lock the index. Other git processes, such as an editor's `git status`,
// often lock it briefly.
const lockTries = 20

func newToken() string { return "coven " + rand.Text() }

func (c *Checkout) lockPath() string { return filepath.Join(c.Git.Dir, "index.lock") }

// lock locks the index, unless the move already holds the lock.
func (m *Move) lock(ctx context.Context) error {
	if m.owned() {
		return nil
	}
	return m.c.lock(ctx, filepath.Join(m.c.State, "lock"), m.rec.Token)
}

// LockIndex locks the index, so that git cannot write it. A later Advance uses the lock. If coven is killed,
// there is a lock without a record: see UnlockIndex.
func (c *Checkout) LockIndex(ctx context.Context) error {
	if err := os.MkdirAll(filepath.Dir(c.State), 0o755); err != nil {
		return err
	}
	mine := c.State + ".lock"
	defer os.Remove(mine) //nolint:errcheck // the next lock replaces it
	token := newToken()
	if err := c.lock(ctx, mine, token); err != nil {
		return err
	}
	c.Token = token
	return nil
}

// UnlockIndex removes the lock that LockIndex created. Without a Token, it removes the lock of a killed process,
// for which there must be no record.
func (c *Checkout) UnlockIndex() error {
	present := Token(c.lockPath())
	if present == "" || c.Token != "" && present != c.Token {
		return nil
	}
	return os.Remove(c.lockPath())
}

// lock locks the index like git, but the lock file contains the token from the start. mine is a path for the
// new file.
func (c *Checkout) lock(ctx context.Context, mine, token string) error {
	for try := 1; ; try++ {
		err := os.WriteFile(mine, []byte(token+"\n"), 0o644)
		if err == nil {
			err = linkOrRename(mine, c.lockPath())
		}
		if err == nil {
			return nil
		}
		if !errors.Is(err, fs.ErrExist) || try == lockTries {
			return fmt.Errorf("lock the index of %s: %w", c.top(), err)
		}
		if err := c.Await(ctx); err != nil {
			return err
		}
	}
}

// linkOrRename gives a file a second name, or a new name if hard links are not supported, so that the file
// appears with its content. It fails with fs.ErrExist if the name exists.
func linkOrRename(file, as string) error {
	err := os.Link(file, as)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	err = between(filepath.Dir(file), filepath.Base(file), filepath.Dir(as), filepath.Base(as), moveAt)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	// The file system supports neither, so the file is empty for a moment.
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	out, err := os.OpenFile(as, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = out.Write(raw)
	return errors.Join(err, out.Close())
}

func (m *Move) owned() bool { return Token(m.c.lockPath()) == m.rec.Token }

// Token returns the token in a lock file that coven created, or "" for other lock files.
func Token(file string) string {
	f, err := regularfile.Open(file, syscall.O_NOFOLLOW)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	raw, err := io.ReadAll(io.LimitReader(f, 100))
	text := strings.TrimSuffix(string(raw), "\n")
	if err != nil || !strings.HasPrefix(text, "coven ") {
		return ""
	}
	return text
}

func (m *Move) unlock() error {
	if !m.owned() {
		return nil
	}
	return os.Remove(m.c.lockPath())
}
