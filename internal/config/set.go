package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"

	"github.com/google/renameio/v2"
	"gopkg.in/yaml.v3"

	"github.com/coven-run/coven/internal/config/check"
	"github.com/coven-run/coven/internal/config/yamldoc"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/text/shellword"
)

// SetRequest is a request to set a key in a settings file.
type SetRequest struct {
	Key    string   // run.max_tasks
	Values []string // the value as YAML, or the items of a list of strings
	User   bool     // use the user's file instead of the project's
}

// Set sets a key in a settings file and returns the name of the file. It creates the file if needed,
// and keeps everything else in it. It writes nothing if the result
// would be invalid. Processes may set keys of the same file concurrently.
func (s Sources) Set(r SetRequest) (string, error) {
	k, err := keyNamed(r.Key)
	if err != nil {
		return "", err
	}
	f, err := s.fileFor(r.User)
	if err != nil {
		return "", err
	}
	if k.usersOnly && f.theirs {
		return "", usersOnly(r, f)
	}
	value, err := k.parse(r.Values)
	if err != nil {
		return "", err
	}
	if err := f.validValue(k, value); err != nil {
		return "", err
	}
	if wrong := f.misnamed(); wrong != nil {
		return "", wrong
	}
	unlock, err := f.lock()
	if err != nil {
		return "", err
	}
	defer unlock()
	before, err := f.read()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	after, err := f.edited(string(before), k, value)
	if err != nil {
		return "", err
	}
	return f.label, f.write(after)
}

// usersOnly returns the error for setting a key of the user's file in a file of the repository.
func usersOnly(r SetRequest, f file) error {
	if r.User {
		return exit.Usagef("export XDG_CONFIG_HOME=DIR", "%s is allowed only in your own file, and %s is inside the repository", r.Key, f.label)
	}
	return exit.Usagef("coven config set --user "+r.Key+" "+words(r.Values), "%s is allowed only in your own file", r.Key)
}

// validValue checks a value independent of the rest of the file.
func (f file) validValue(k key, value *yaml.Node) error {
	alone, err := edit("", strings.Split(k.name, "."), value)
	if err != nil {
		return err
	}
	if wrong := Errors(nil); errors.As(f.valid(alone), &wrong) {
		return exit.Usagef("coven config explain "+k.name, "%s: %s", k.name, withHint(wrong[0]))
	}
	return nil
}

// edited returns the content of a file with a key set to a valid value. An invalid file is accepted
// if setting the key makes it valid.
func (f file) edited(before string, k key, value *yaml.Node) (string, error) {
	path := strings.Split(k.name, ".")
	after, err := edit(before, path, value)
	if err == nil && f.valid(after) == nil && onlyDiffer(before, after, path) && len(after) <= maxFile {
		return after, nil
	}
	if err := f.valid(before); err != nil {
		return "", err
	}
	if len(after) > maxFile {
		return "", exit.Usagef("", "%s would be larger than %d bytes", f.label, maxFile)
	}
	return "", exit.Usagef(shellword.Edit(f.label, 1), "set %s in %s by hand: %w", k.name, f.label, errByHand)
}

// valid checks the content of a file.
func (f file) valid(text string) error {
	c := Default()
	_, err := c.apply(f, []byte(text))
	return err
}

// withHint returns the text of an error without its location, which refers to a temporary file.
func withHint(e yamldoc.Error) string {
	if e.Hint == "" {
		return e.Msg
	}
	return e.Msg + " (" + e.Hint + ")"
}

// keyNamed returns a key by its name.
func keyNamed(name string) (key, error) {
	for _, k := range keys() {
		if k.name == name {
			return k, nil
		}
	}
	return key{}, unknownKey(name)
}

// parse converts values to a YAML node.
func (k key) parse(values []string) (*yaml.Node, error) {
	kind := reflect.TypeOf(k.of(Config{}))
	if kind == reflect.TypeFor[string]() && len(values) == 1 {
		return yamldoc.Encode(values[0]), nil
	}
	isList := kind == reflect.TypeFor[[]string]() || kind == reflect.TypeFor[[]check.Check]() || kind == reflect.TypeFor[Network]()
	if isList && (len(values) != 1 || !strings.HasPrefix(strings.TrimSpace(values[0]), "[")) {
		return yamldoc.Encode(values), nil
	}
	var doc yaml.Node
	if len(values) != 1 || yaml.Unmarshal([]byte(values[0]), &doc) != nil || len(doc.Content) != 1 {
		return nil, exit.Usagef("coven config explain "+k.name, "%s is not a value of %s", words(values), k.name)
	}
	return doc.Content[0], nil
}

// words quotes values for a command line.
func words(values []string) string {
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = shellword.Word(v)
	}
	return strings.Join(quoted, " ")
}

// fileFor returns the project's or the user's settings file.
func (s Sources) fileFor(user bool) (file, error) {
	for _, f := range s.files() {
		if f.inside != user {
			return f, nil
		}
	}
	if user {
		return file{}, exit.Usagef("export HOME", "there is no place for your settings: HOME is not set")
	}
	return file{}, exit.Usagef("coven config set --user KEY VALUE", "this directory is not in a git repository")
}

// lock prevents other processes from setting keys until unlock is called. It creates and locks the
// directory of the file, so that no lock file is left behind.
func (f file) lock() (unlock func(), err error) {
	if f.inside {
		if err := regularfile.Directory(f.dir, filepath.Dir(f.name)); err != nil {
			return nil, err
		}
	}
	path := filepath.Dir(f.path())
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, fmt.Errorf("write %s: %w", f.label, err)
	}
	dir, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", f.label, err)
	}
	// Ignore errors: some network file systems cannot lock directories.
	for errors.Is(syscall.Flock(int(dir.Fd()), syscall.LOCK_EX), syscall.EINTR) {
	}
	return func() { _ = dir.Close() }, nil
}

// write replaces the content of the file atomically. If it is a link, the target is replaced.
func (f file) write(text string) error {
	name, err := f.target()
	if err != nil {
		return err
	}
	if err := regularfile.Replace(name, []byte(text), 0o644, renameio.WithExistingPermissions()); err != nil {
		return fmt.Errorf("write %s: %w", f.label, err)
	}
	return nil
}

// target returns the path of the file with links resolved.
func (f file) target() (string, error) {
	name := f.path()
	if info, err := os.Lstat(name); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return name, nil //nolint:nilerr // the file will be created
	}
	target, err := filepath.EvalSymlinks(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", exit.Usagef("ls -l "+shellword.Word(f.label), "%s is a symbolic link to a file that does not exist: nothing was written", f.label)
	case err != nil:
		return "", fmt.Errorf("write %s: %w", f.label, err)
	case f.inside && f.leadsOut():
		return "", f.readError(errLeadsOut)
	}
	return target, nil
}
