package forwarder

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/google/renameio/v2"

	"github.com/coven-run/coven/internal/process/failpoint"
)

// reserved is a file that will replace the login file. It has the same owner and
// mode, and reserves its space on the disk before the refresh token is
// used up. If the login file is a symbolic link, the link remains.
type reserved struct {
	*renameio.PendingFile
	dir string
}

// padding is the number of bytes by which a refreshed login may be longer than the current one.
const padding = 16 << 10

func reserve(path string) (*reserved, error) {
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(target)
	if err != nil {
		return nil, err
	}
	dir := filepath.Dir(target)
	file, err := renameio.NewPendingFile(target, renameio.WithTempDir(dir), renameio.WithStaticPermissions(info.Mode().Perm()))
	if err != nil {
		return nil, err
	}
	r := &reserved{file, dir}
	if err := r.prepare(info); err != nil {
		r.drop()
		return nil, err
	}
	return r, nil
}

func (r *reserved) prepare(like os.FileInfo) error {
	if err := sameOwner(r.File, like); err != nil {
		return err
	}
	if _, err := r.Write(make([]byte, like.Size()+padding)); err != nil {
		return err
	}
	return r.Sync()
}

// sameOwner gives a file the owner and group of another file. The group does not change if the
// user is not a member of it.
func sameOwner(file *os.File, like os.FileInfo) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	is, ok := info.Sys().(*syscall.Stat_t)
	want, ok2 := like.Sys().(*syscall.Stat_t)
	if !ok || !ok2 {
		return nil
	}
	if is.Gid != want.Gid {
		_ = file.Chown(-1, int(want.Gid))
	}
	if is.Uid != want.Uid {
		return file.Chown(int(want.Uid), -1)
	}
	return nil
}

// replace replaces the login file by this file with the given content.
func (r *reserved) replace(content []byte) error {
	if _, err := r.WriteAt(content, 0); err != nil {
		return err
	}
	if err := r.Truncate(int64(len(content))); err != nil {
		return err
	}
	if err := r.CloseAtomicallyReplace(); err != nil { // includes a sync
		return err
	}
	failpoint.Point("login.saved")
	dir, err := os.Open(r.dir)
	if err != nil {
		return nil // the login is saved, but a power failure may undo it
	}
	defer func() { _ = dir.Close() }()
	_ = dir.Sync()
	return nil
}

// drop removes the file, unless it has replaced the login.
func (r *reserved) drop() { _ = r.Cleanup() }

// save writes a refreshed login and keeps everything else in the file. If the file contains another login
// by now, save returns that login instead.
func (o *oauth) save(ctx context.Context, next *renewal, file *reserved) (saved, error) {
	ctx, cancel := context.WithTimeout(ctx, writeLockWait)
	defer cancel()
	// Continue without the lock if necessary: losing a concurrent change of the CLI to another part of the
	// file is better than losing the login.
	lock, err := waitLock(ctx, filepath.Join(o.dir, writeLock), writeLockStale, nil)
	if err == nil {
		defer lock.release()
	}
	now, raw, err := readLogin(o.path)
	switch {
	case err != nil:
		return saved{}, err // for example, the user has logged out
	case now.RefreshToken != next.spent:
		return now, nil // the user has logged in again
	}
	content, err := replaceLogin(raw, next)
	if err != nil {
		return saved{}, err
	}
	failpoint.Point("login.save")
	return next.login, file.replace(content)
}

// replaceLogin returns the content of a file with its login refreshed. Unknown fields are
// kept.
func replaceLogin(raw []byte, next *renewal) ([]byte, error) {
	var file, login map[string]json.RawMessage
	if err := json.Unmarshal(raw, &file); err != nil {
		return nil, fmt.Errorf("decode login: %w", err)
	}
	if err := json.Unmarshal(file[loginField], &login); err != nil {
		return nil, fmt.Errorf("decode login: %w", err)
	}
	fields := map[string]any{
		"accessToken": next.login.AccessToken, "refreshToken": next.login.RefreshToken,
		"expiresAt": next.login.ExpiresAt, "scopes": next.login.Scopes,
	}
	if next.login.RefreshToken != next.spent {
		delete(login, "refreshTokenExpiresAt") // belongs to the old refresh token
	}
	if next.until > 0 {
		fields["refreshTokenExpiresAt"] = next.until
	}
	for name, value := range fields {
		text, err := encode(value)
		if err != nil {
			return nil, err
		}
		login[name] = text
	}
	text, err := encode(login)
	if err != nil {
		return nil, err
	}
	file[loginField] = text
	return encode(file)
}

// encode is like json.Marshal without HTML escapes.
func encode(value any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, fmt.Errorf("encode login: %w", err)
	}
	return bytes.TrimRight(out.Bytes(), "\n"), nil
}
