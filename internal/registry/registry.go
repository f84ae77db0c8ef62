// Package registry says which plugins there are, and which of them may run.
//
// Rules:
//   - A plugin is one executable file, coven-KIND-NAME. It is looked for in the
//     project's .coven/plugins, in the person's directory of plugins, in the absolute
//     directories of PATH, and among those that are built in. The first place that
//     has the name hides the others, also when what is there cannot be run: nothing
//     is passed over in silence.
//   - A plugin is the project's when it was found in the project's directory, or when
//     its file is in the repository (a checkout, the git directory) or reached
//     through it. It runs only if the person trusts exactly its bytes.
//   - What .coven/plugins.lock names has one of the hashes that stand there, wherever
//     it was found. Trust does not help against that.
//   - What is the project's or in the lock is pinned: it runs from a copy of the very
//     bytes that were hashed, in the person's cache. What happens to the file after
//     that changes nothing.
//   - Other plugins are the person's own, and run where they are.
package registry

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/didyoumean"
	"github.com/coven-run/coven/internal/trust"
	"github.com/coven-run/coven/plugins"
)

// The places of plugins, those that hide others first.
const (
	FromProject = "project"
	FromUser    = "user"
	FromPath    = "PATH"
	FromCoven   = "built in"
)

// State is what a plugin is fit for.
type State string

// The states. Only plugins that are built in or trusted may run.
const (
	BuiltIn   State = "built in"
	Trusted   State = "trusted"
	Untrusted State = "not trusted"
	Changed   State = "changed"                 // since it was trusted
	Mismatch  State = "does not match the lock" // none of the hashes there
	Broken    State = "not executable"
	Hidden    State = "hidden" // by one of a higher place
	Misnamed  State = "misnamed"
)

// Plugin is a plugin that was found.
type Plugin struct {
	Kind     plugins.Kind // empty, as Name: misnamed
	Name     string
	From     string // the place
	File     string // absolute, as it was found; empty: built in
	Project  bool   // the repository decides what it is
	Locked   bool   // plugins.lock names it
	State    State
	Detail   string // more about the state
	HiddenBy string // the file that hides it
	Hides    string // the place of the next one of its kind and name

	// Of pinned plugins, and after Verify of all that can be read.
	Size   int64
	SHA256 string
	Before trust.Item // what was trusted, if these are other bytes
	Lines  int        // of a script; 0: it is none
	Head   string     // how a script begins
	runner []string   // of a script: the words of its first line
}

// ID is the name of a plugin's file.
func (p Plugin) ID() string {
	if p.Kind == "" {
		return filepath.Base(p.File)
	}
	return fileOf(p.Kind, p.Name)
}

// Pinned reports whether exactly known bytes of the plugin run, or none.
func (p Plugin) Pinned() bool { return p.Project || p.Locked }

// Runs reports whether the plugin may run.
func (p Plugin) Runs() bool { return p.State == BuiltIn || p.State == Trusted }

func fileOf(kind plugins.Kind, name string) string { return prefix + string(kind) + "-" + name }

const prefix = "coven-"

var (
	idRE   = regexp.MustCompile(`^coven-(provider|model|reviewer|arbiter)-([a-z0-9][a-z0-9-]*)$`)
	nameRE = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*$`)
)

// Shipped is a plugin that is built in.
type Shipped struct {
	Kind plugins.Kind
	Name string
	Argv []string // what runs it
}

// Options are where plugins are looked for.
type Options struct {
	Root           string               // of the main checkout
	UntrustedPaths trust.UntrustedPaths // of the repository
	UserDir        string               // where the person's settings for coven are
	CacheDir       string               // where coven's copies are kept; made when it is needed
	Path           string               // as in the environment
	Shipped        []Shipped
	Store          *trust.Store
}

// Registry knows the plugins of a repository. Every answer is of the moment. It
// may be used by several goroutines.
type Registry struct{ options Options }

// New returns the registry of a repository. It reads nothing.
func New(o Options) *Registry { return &Registry{o} }

// place is a directory of plugins.
type place struct{ from, dir string }

// places are the directories of plugins, the highest first, each once.
func (r *Registry) places() []place {
	all := []place{{FromProject, filepath.Join(r.options.Root, ".coven", "plugins")}}
	if filepath.IsAbs(r.options.UserDir) {
		all = append(all, place{FromUser, filepath.Join(r.options.UserDir, "plugins")})
	}
	for _, dir := range filepath.SplitList(r.options.Path) {
		if filepath.IsAbs(dir) {
			all = append(all, place{FromPath, filepath.Clean(dir)})
		}
	}
	var there []place
	var infos []os.FileInfo
	for _, p := range all {
		info, err := os.Stat(p.dir)
		if err != nil || slices.ContainsFunc(infos, func(other os.FileInfo) bool { return os.SameFile(other, info) }) {
			continue
		}
		there, infos = append(there, p), append(infos, info)
	}
	return there
}

// List returns all plugins: by kind and name, those that hide others first, and
// the misnamed at the end. The error is a yamldoc.Errors when plugins.lock is
// wrong.
func (r *Registry) List() ([]Plugin, error) { return r.list(false) }

// Verify is List, and reads the bytes of every plugin that is not hidden, and of
// the copies that coven has made.
func (r *Registry) Verify() ([]Plugin, error) { return r.list(true) }

func (r *Registry) list(all bool) ([]Plugin, error) {
	lock, err := ReadLock(r.options.Root)
	if err != nil {
		return nil, err
	}
	places := r.places()
	needs, strays, err := r.names(places)
	if err != nil {
		return nil, err
	}
	var found []Plugin
	for _, n := range needs {
		same := r.find(places, n)
		r.assess(&same[0], lock)
		if all {
			same[0] = r.Verified(same[0])
		}
		for i := range same[1:] {
			same[i+1].State, same[i+1].HiddenBy = Hidden, cmp.Or(same[0].File, FromCoven)
		}
		found = append(found, same...)
	}
	return append(found, strays...), nil
}

// names are the plugins that are there under their names, and the files that
// nearly are.
func (r *Registry) names(places []place) (needs []plugins.Need, strays []Plugin, err error) {
	for _, s := range r.options.Shipped {
		needs = append(needs, plugins.Need{Kind: s.Kind, Name: s.Name})
	}
	for _, p := range places {
		entries, err := os.ReadDir(p.dir)
		if err != nil && p.from != FromPath {
			return nil, nil, fmt.Errorf("list the plugins of the %s: %w", p.from, err)
		}
		for _, e := range entries {
			if m := idRE.FindStringSubmatch(e.Name()); m != nil {
				needs = append(needs, plugins.Need{Kind: plugins.Kind(m[1]), Name: m[2]})
			} else if strings.HasPrefix(e.Name(), prefix) && p.from != FromPath {
				strays = append(strays, Plugin{From: p.from, File: filepath.Join(p.dir, e.Name()), State: Misnamed, Detail: misnamed(e.Name())})
			}
		}
	}
	order := func(a, b plugins.Need) int {
		return cmp.Or(cmp.Compare(slices.Index(plugins.Kinds(), a.Kind), slices.Index(plugins.Kinds(), b.Kind)), cmp.Compare(a.Name, b.Name))
	}
	slices.SortFunc(needs, order)
	return slices.Compact(needs), strays, nil
}

// misnamed says why a file is no plugin.
func misnamed(file string) string {
	kind, name, _ := strings.Cut(strings.TrimPrefix(file, prefix), "-")
	switch near := didyoumean.Hint(kind, kinds()); {
	case near != "":
		return fmt.Sprintf("%q is no kind of plugin (%s)", kind, near)
	case !slices.Contains(kinds(), kind):
		return fmt.Sprintf("%q is no kind of plugin (known: %s)", kind, strings.Join(kinds(), ", "))
	}
	return fmt.Sprintf("%q cannot be the name of a plugin: lower-case letters, digits and -", name)
}

// find returns the plugins of one kind and name, the one that hides the others
// first.
func (r *Registry) find(places []place, n plugins.Need) []Plugin {
	var found []Plugin
	for _, at := range places {
		file := filepath.Join(at.dir, fileOf(n.Kind, n.Name))
		if _, err := os.Lstat(file); err == nil || at.from != FromPath && !isGone(err) {
			found = append(found, Plugin{Kind: n.Kind, Name: n.Name, From: at.from, File: file})
		}
	}
	for _, s := range r.options.Shipped {
		if s.Kind == n.Kind && s.Name == n.Name {
			found = append(found, Plugin{Kind: n.Kind, Name: n.Name, From: FromCoven, State: BuiltIn})
		}
	}
	for i, p := range found {
		found[i].Project = p.From == FromProject || p.File != "" && r.options.UntrustedPaths.Contains(p.File)
		if i+1 < len(found) {
			found[i].Hides = found[i+1].From
		}
	}
	return found
}

// Find returns the plugin that a kind and name mean, and what it is fit for. The
// error is plugins.ErrUnknown, with what was probably meant, when there is none.
func (r *Registry) Find(kind plugins.Kind, name string) (Plugin, error) {
	lock, err := ReadLock(r.options.Root)
	if err != nil {
		return Plugin{}, err
	}
	if slices.Contains(plugins.Kinds(), kind) && nameRE.MatchString(name) {
		if found := r.find(r.places(), plugins.Need{Kind: kind, Name: name}); len(found) > 0 {
			r.assess(&found[0], lock)
			return found[0], nil
		}
	}
	return Plugin{}, r.unknown(kind, name)
}

func (r *Registry) unknown(kind plugins.Kind, name string) error {
	if !slices.Contains(plugins.Kinds(), kind) {
		return fmt.Errorf("%w: %s is no kind of plugin (known: %s)", plugins.ErrUnknown, kind, strings.Join(kinds(), ", "))
	}
	names := r.Names(kind)
	hint := didyoumean.Hint(name, names)
	if hint == "" {
		hint = "known: " + cmp.Or(strings.Join(names, ", "), "none")
	}
	return &UnknownError{Kind: kind, Name: name, Hint: hint}
}

// UnknownError is a plugins.ErrUnknown with what was probably meant.
type UnknownError struct {
	Kind plugins.Kind
	Name string
	Hint string
}

// Error says what there is not, and the hint.
func (e *UnknownError) Error() string {
	return fmt.Sprintf("%v: %s (%s)", plugins.ErrUnknown, e.Missing(), e.Hint)
}

// Missing says what there is not.
func (e *UnknownError) Missing() string { return fmt.Sprintf("no %s %q", e.Kind, e.Name) }

// Unwrap is plugins.ErrUnknown.
func (e *UnknownError) Unwrap() error { return plugins.ErrUnknown }

// kinds are the kinds of plugins, as texts.
func kinds() []string {
	var all []string
	for _, kind := range plugins.Kinds() {
		all = append(all, string(kind))
	}
	return all
}

// Names are the names of all plugins of a kind, whatever they are fit for.
func (r *Registry) Names(kind plugins.Kind) []string {
	needs, _, _ := r.names(r.places()) // what cannot be read has no names
	var names []string
	for _, n := range needs {
		if n.Kind == kind {
			names = append(names, n.Name)
		}
	}
	return names
}

// mode says what is in the way of running a file; empty when nothing is.
func mode(info fs.FileInfo) string {
	switch {
	case info.IsDir():
		return "it is a directory"
	case !info.Mode().IsRegular():
		return "it is not a file"
	case info.Mode()&0o111 == 0:
		return "it may not be executed: chmod +x"
	}
	return ""
}
