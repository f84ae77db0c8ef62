// Package pluginregistry finds plugins and decides which of them may run.
//
// Rules:
//   - A plugin is an executable file named coven-KIND-NAME. The registry searches the
//     project's .coven/plugins, the user's plugin directory, the absolute directories
//     of PATH, and the built-in plugins. The first place with the name hides the
//     others, even if its file cannot be run: nothing is skipped silently.
//   - A plugin belongs to the project if it was found in the project's directory, or if
//     its file is inside the repository (a checkout or the git directory) or reached
//     through it. It runs only if the user trusts exactly its content.
//   - A plugin named in .coven/plugins.lock must have one of the hashes listed there,
//     regardless of its place. Trust cannot override that.
//   - Plugins of the project and plugins in the lock are pinned: they run from a copy
//     of the hashed content in the user's cache. Later changes to the file have no
//     effect.
//   - Other plugins belong to the user and run in place.
package pluginregistry

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/project/trust"
	"github.com/coven-run/coven/internal/text/didyoumean"
	"github.com/coven-run/coven/internal/text/lazyregexp"
	"github.com/coven-run/coven/plugins"
	"github.com/coven-run/coven/plugins/provider"
)

// The places of plugins, in order of precedence.
const (
	FromProject = "project"
	FromUser    = "user"
	FromPath    = "PATH"
	FromCoven   = "built in"
)

// State says whether a plugin may run, and why.
type State string

// The states. Only plugins that are built in or trusted may run.
const (
	BuiltIn   State = "built in"
	Trusted   State = "trusted"
	Untrusted State = "not trusted"
	Changed   State = "changed"                 // since it was trusted
	Mismatch  State = "does not match the lock" // its hash is not in the lock
	Broken    State = "not executable"
	Hidden    State = "hidden" // by a plugin in a place with higher precedence
	Misnamed  State = "misnamed"
)

// Plugin is a plugin found by the registry.
type Plugin struct {
	Kind     plugins.Kind // empty, like Name, if the file is misnamed
	Name     string
	From     string // the place
	File     string // absolute path; empty for a built-in plugin
	Project  bool   // whether it belongs to the project
	Locked   bool   // whether plugins.lock names it
	State    State
	Detail   string // details of the state
	HiddenBy string // the file that hides this one
	Hides    string // the place of the next plugin with this kind and name

	// Set for pinned plugins and, after Verify, for all readable plugins.
	Size   int64
	SHA256 string
	Before trust.Item // the trusted item, if its content differs
	Lines  int        // of a script; 0 for other files
	Head   string     // beginning of a script
	runner []string   // interpreter line of a script
	// Capabilities are declared by a provider. They are nil if it declares none.
	Capabilities provider.Capabilities
}

// Abilities describes the capabilities that a provider declares and those that it lacks.
func (p Plugin) Abilities() (can, cannot string) {
	if p.Capabilities == nil {
		return "not declared", ""
	}
	words := func(all []provider.Capability) string {
		texts := make([]string, len(all))
		for i, one := range all {
			texts[i] = one.String()
		}
		return strings.Join(texts, ", ")
	}
	return words(p.Capabilities), words(p.Capabilities.Cannot())
}

// ID returns the name of a plugin's file.
func (p Plugin) ID() string {
	if p.Kind == "" {
		return filepath.Base(p.File)
	}
	return FileOf(p.Kind, p.Name)
}

// Pinned reports whether only known content of the plugin may run.
func (p Plugin) Pinned() bool { return p.Project || p.Locked }

// Runs reports whether the plugin may run.
func (p Plugin) Runs() bool { return p.State == BuiltIn || p.State == Trusted }

// FileOf returns the name of a plugin's file.
func FileOf(kind plugins.Kind, name string) string { return prefix + string(kind) + "-" + name }

const prefix = "coven-"

var (
	idRE   = lazyregexp.New(`^coven-(provider|model|reviewer|arbiter|forge)-([a-z0-9][a-z0-9-]*)$`)
	nameRE = lazyregexp.New(`^[a-z0-9][a-z0-9-]*$`)
)

// Shipped is a built-in plugin.
type Shipped struct {
	Kind plugins.Kind
	Name string
	Argv []string // command line

	Capabilities provider.Capabilities
}

// Options configures a Registry.
type Options struct {
	Root           string               // of the main checkout; empty without a repository
	UntrustedPaths trust.UntrustedPaths // of the repository
	UserDir        string               // directory of the user's settings
	CacheDir       string               // directory for copies; created on demand
	Path           string               // the PATH variable
	Shipped        []Shipped
	Store          *trust.Store // of the repository
}

// Registry finds the plugins of a repository. It does not cache. It is safe for
// concurrent use.
type Registry struct{ options Options }

// New returns the registry of a repository. It reads nothing.
func New(o Options) *Registry { return &Registry{o} }

// place is a directory of plugins.
type place struct{ from, dir string }

// places returns the existing plugin directories without duplicates, in order of precedence.
func (r *Registry) places() []place {
	var all []place
	if r.options.Root != "" {
		all = append(all, place{FromProject, filepath.Join(r.options.Root, ".coven", "plugins")})
	}
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

// List returns all plugins, sorted by kind, name and precedence, with misnamed files at
// the end. If plugins.lock is invalid, the error is a yamldoc.Errors.
func (r *Registry) List() ([]Plugin, error) { return r.list(false) }

// Verify is like List but also reads the content of every plugin that is not hidden,
// and checks the copies.
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

// names returns the kinds and names of all plugins, and the misnamed files.
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

// misnamed returns the reason why a file name is invalid.
func misnamed(file string) string {
	kind, name, _ := strings.Cut(strings.TrimPrefix(file, prefix), "-")
	switch near := didyoumean.Hint(kind, kinds()); {
	case near != "":
		return fmt.Sprintf("%q is not a plugin kind (%s)", kind, near)
	case !slices.Contains(kinds(), kind):
		return fmt.Sprintf("%q is not a plugin kind (known: %s)", kind, strings.Join(kinds(), ", "))
	}
	return CheckName(name).Error()
}

// CheckName returns an error if name is not a valid plugin name.
func CheckName(name string) error {
	if !nameRE.MatchString(name) {
		return fmt.Errorf("invalid plugin name %q: use lower-case letters, digits and -", name)
	}
	return nil
}

// find returns the plugins of one kind and name in order of precedence.
func (r *Registry) find(places []place, n plugins.Need) []Plugin {
	var found []Plugin
	for _, at := range places {
		file := filepath.Join(at.dir, FileOf(n.Kind, n.Name))
		if _, err := os.Lstat(file); err == nil || at.from != FromPath && !isGone(err) {
			found = append(found, Plugin{Kind: n.Kind, Name: n.Name, From: at.from, File: file})
		}
	}
	for _, s := range r.options.Shipped {
		if s.Kind == n.Kind && s.Name == n.Name {
			found = append(found, Plugin{Kind: n.Kind, Name: n.Name, From: FromCoven, State: BuiltIn, Capabilities: s.Capabilities})
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

// Find returns the plugin of a kind and name. If there is none, the error is an
// *UnknownError with a suggestion.
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
		return fmt.Errorf("%w: %s is not a plugin kind (known: %s)", plugins.ErrUnknown, kind, strings.Join(kinds(), ", "))
	}
	names := r.Names(kind)
	hint := cmp.Or(didyoumean.Hint(name, names), "known: "+cmp.Or(strings.Join(names, ", "), "none"))
	return &UnknownError{Kind: kind, Name: name, Hint: hint}
}

// UnknownError is a plugins.ErrUnknown with a suggestion.
type UnknownError struct {
	Kind plugins.Kind
	Name string
	Hint string
}

// Error names the missing plugin and adds the suggestion.
func (e *UnknownError) Error() string {
	return fmt.Sprintf("%v: %s (%s)", plugins.ErrUnknown, e.Missing(), e.Hint)
}

// Missing names the missing plugin.
func (e *UnknownError) Missing() string { return fmt.Sprintf("no %s %q", e.Kind, e.Name) }

// Unwrap returns plugins.ErrUnknown.
func (e *UnknownError) Unwrap() error { return plugins.ErrUnknown }

// kinds returns the plugin kinds as strings.
func kinds() []string {
	var all []string
	for _, kind := range plugins.Kinds() {
		all = append(all, string(kind))
	}
	return all
}

// Names returns the names of all plugins of a kind, in any state.
func (r *Registry) Names(kind plugins.Kind) []string {
	needs, _, _ := r.names(r.places()) // ignore unreadable directories
	var names []string
	for _, n := range needs {
		if n.Kind == kind {
			names = append(names, n.Name)
		}
	}
	return names
}

// mode returns the reason why a file's mode forbids running it, or "".
func mode(info fs.FileInfo) string {
	switch {
	case info.IsDir():
		return "it is a directory"
	case !info.Mode().IsRegular():
		return "it is not a file"
	case info.Mode()&0o111 == 0:
		return "it is not executable: chmod +x"
	}
	return ""
}
