package sandbox_test

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/config"
	"github.com/coven-run/coven/internal/process"
	"github.com/coven-run/coven/internal/sandbox"
)

// user is a user with a home directory and a repository.
type user struct {
	home, repo string
	gitDir     string // defaults to .git in repo
	env        map[string]string
	settings   config.Sandbox
	kernel     process.Enforcement
	private    error // why programs cannot have a network of their own
}

func newUser(t *testing.T) *user {
	t.Helper()
	dir := t.TempDir()
	u := &user{home: filepath.Join(dir, "home"), repo: filepath.Join(dir, "repo"), kernel: process.Enforcement{ABI: 7, Covers: true}}
	u.env = map[string]string{"HOME": u.home}
	for _, made := range []string{u.home, filepath.Join(u.repo, ".git")} {
		if err := os.MkdirAll(made, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return u
}

func (u *user) sandbox() *sandbox.Sandbox {
	return sandbox.New(sandbox.Options{
		Settings: u.settings, Getenv: func(name string) string { return u.env[name] },
		Enforcement: func() process.Enforcement { return u.kernel }, Private: func() error { return u.private },
		Temp: filepath.Join(u.home, "tmp"), Cache: filepath.Join(u.home, "cache"), Root: u.repo, GitDir: cmp.Or(u.gitDir, filepath.Join(u.repo, ".git")),
	})
}

func (u *user) room(t *testing.T) *sandbox.Room {
	t.Helper()
	room, err := u.sandbox().Room("task", filepath.Join(u.repo, "W"), filepath.Join(u.repo, ".git", "worktrees", "task"))
	if err != nil {
		t.Fatal(err)
	}
	return room
}

// A program may change exactly the worktree, its git directory, its temporary files,
// its caches, and the paths in the user's settings.
func TestBoundary(t *testing.T) {
	u := newUser(t)
	shared := filepath.Join(u.home, "shared")
	if err := os.Mkdir(shared, 0o700); err != nil {
		t.Fatal(err)
	}
	u.settings.Write = []string{"~/shared", "~/missing"}
	room := u.room(t)
	b := room.Boundary(sandbox.Access{Write: []string{"/state"}, Connect: []string{"/socket"}})
	tail := func(paths []string) []string {
		var short []string
		for _, path := range paths {
			path = strings.TrimPrefix(strings.TrimPrefix(path, u.home), u.repo)
			if strings.HasPrefix(path, "/cache/tasks/") {
				path = "/cache"
			}
			short = append(short, path)
		}
		slices.Sort(short)
		return short
	}
	if got, want := tail(b.Write), []string{"/.git/worktrees/task", "/W", "/cache", "/shared", "/state", "/tmp/task/tmp"}; !slices.Equal(got, want) {
		t.Errorf("writable: %q, want %q", got, want)
	}
	if !slices.Equal(b.Connect, []string{"/socket"}) {
		t.Errorf("sockets: %q", b.Connect)
	}
	reading := room.Boundary(sandbox.Access{ReadOnly: true})
	if got, want := tail(reading.Write), []string{"/cache", "/shared", "/tmp/task/tmp"}; !slices.Equal(got, want) {
		t.Errorf("writable for a reviewer: %q, want %q", got, want)
	}
	for _, path := range b.Write[1:2] {
		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			t.Errorf("%s was not made: %v", path, err)
		}
	}
	u.kernel = process.Enforcement{}
	if b := u.room(t).Boundary(sandbox.Access{}); b != nil {
		t.Errorf("without Landlock: %+v", b)
	}
}

// A task has its own /dev/shm, unless the user shares the machine's, or a needed path is there.
func TestShm(t *testing.T) {
	u := newUser(t)
	if b := u.room(t).Boundary(sandbox.Access{}); b.Shm != filepath.Join(u.home, "tmp", "task", "shm") {
		t.Errorf("the task's /dev/shm is %q", b.Shm)
	} else if _, err := os.Stat(b.Shm); err != nil {
		t.Error(err)
	}
	if b := u.room(t).Boundary(sandbox.Access{Show: []string{"/dev/shm/socket"}}); b.Shm != "" {
		t.Errorf("%q covers what the program needs", b.Shm)
	}
	u.repo = "/dev/shm/repo"
	if b := u.room(t).Boundary(sandbox.Access{}); b.Shm != "" {
		t.Errorf("%q covers the repository", b.Shm)
	}
	u.repo, u.settings.Write = "/repo", []string{"/dev/shm"}
	if b := u.room(t).Boundary(sandbox.Access{}); b.Shm != "" {
		t.Errorf("%q covers what the user shares", b.Shm)
	}
}

// Plugins may change their own directories and no worktree. Files are hidden from them only
// if they are covered by mounts.
func TestPlugins(t *testing.T) {
	u := newUser(t)
	room, b, err := u.sandbox().Plugins("/plugins")
	if err != nil || !b.Live || !slices.Equal(b.Write, []string{room.Temp(), b.Write[1], "/plugins"}) || !strings.HasPrefix(b.Write[1], u.home+"/cache/tasks/") || !slices.Equal(b.Connect, []string{"/plugins"}) {
		t.Fatalf("%+v, %v", b, err)
	}
	if !slices.Contains(b.Hide, u.home+"/.ssh") {
		t.Errorf("hidden: %q", b.Hide)
	}
	u.kernel.Covers = false
	if _, b, err := u.sandbox().Plugins("/plugins"); err != nil || b.Hide != nil {
		t.Errorf("without mounts: %+v, %v", b, err)
	}
	u.kernel = process.Enforcement{}
	if _, b, err := u.sandbox().Plugins("/plugins"); err != nil || b != nil {
		t.Errorf("without Landlock: %+v, %v", b, err)
	}
}

// Secrets are hidden, except those that the user shows or a program needs.
func TestHidden(t *testing.T) {
	u := newUser(t)
	u.env["SSH_AUTH_SOCK"], u.env["XDG_RUNTIME_DIR"] = "/run/agent.sock", "/run/user/7"
	hidden := func(a sandbox.Access) []string { return u.room(t).Boundary(a).Hide }
	all := hidden(sandbox.Access{})
	for _, path := range []string{
		u.home + "/.ssh", u.home + "/.aws", u.home + "/.npmrc", u.home + "/.claude/.credentials.json",
		u.repo + "/.coven/secrets.yaml", u.repo + "/.coven/sessions", u.repo + "/.git/coven/private", u.repo + "/.git/coven/records", "/run/agent.sock", "/run/user/7/bus", "/var/run/docker.sock",
	} {
		if !slices.Contains(all, path) {
			t.Errorf("%s is not hidden", path)
		}
	}
	if slices.ContainsFunc(all, func(path string) bool { return !filepath.IsAbs(path) }) {
		t.Errorf("relative paths: %q", all)
	}
	u.settings.Hide = []string{"!~/.npmrc", "~/private", "/etc/mine", "~/.ssh"}
	some := hidden(sandbox.Access{Show: []string{u.home + "/.codex/auth.json"}})
	for path, want := range map[string]bool{
		u.home + "/.npmrc": false, u.home + "/private": true, "/etc/mine": true, u.home + "/.codex/auth.json": false, u.home + "/.ssh": true,
	} {
		if slices.Contains(some, path) != want {
			t.Errorf("%s: hidden %v", path, !want)
		}
	}
	if n := len(slices.Compact(slices.Sorted(slices.Values(some)))); n != len(some) {
		t.Errorf("%d paths, %d different ones", len(some), n)
	}
	// A CLI that is installed in its own directory can start, and its login stays hidden.
	if !slices.Contains(hidden(sandbox.Access{}), u.home+"/.claude") {
		t.Error("the directory of Claude Code is not hidden")
	}
	if err := os.MkdirAll(filepath.Join(u.home, ".claude", "local"), 0o700); err != nil {
		t.Fatal(err)
	}
	some = hidden(sandbox.Access{})
	if slices.Contains(some, u.home+"/.claude") || !slices.Contains(some, u.home+"/.claude/.credentials.json") {
		t.Errorf("with a CLI in it: %q", some)
	}
	// A repository in a hidden directory stays visible.
	u.settings.Hide = []string{filepath.Dir(u.repo), u.repo + "/.git", u.repo + "/W", u.repo + "/W/secret"}
	some = hidden(sandbox.Access{})
	if !slices.Contains(some, u.repo+"/W/secret") || slices.Contains(some, filepath.Dir(u.repo)) || slices.Contains(some, u.repo+"/.git") || slices.Contains(some, u.repo+"/W") {
		t.Errorf("hidden: %q", some)
	}
	delete(u.env, "HOME")
	if some = hidden(sandbox.Access{}); slices.ContainsFunc(some, func(path string) bool { return strings.Contains(path, ".ssh") }) {
		t.Errorf("a user without a home: %q", some)
	}
}

// The files of the user's running programs are hidden, and the places where their sockets appear, except
// those of coven that the program needs and those that the user shows.
func TestHiddenSockets(t *testing.T) {
	u := newUser(t)
	runtime, temp := filepath.Join(t.TempDir(), "runtime"), t.TempDir()
	u.env["XDG_RUNTIME_DIR"], u.env["TMPDIR"] = runtime, temp
	for _, dir := range []string{"coven-1/agent", "coven-2", "editor", "shown"} {
		if err := os.MkdirAll(filepath.Join(runtime, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	u.settings.Hide = []string{"!" + runtime + "/shown", "!" + runtime + "/missing", "!~/.npmrc"}
	gate := runtime + "/coven-1/agent"
	b := u.room(t).Boundary(sandbox.Access{Connect: []string{gate}})
	user := strconv.Itoa(os.Getuid())
	for path, want := range map[string]bool{
		runtime + "/editor": true, runtime + "/coven-2": true, runtime + "/bus": true, "/run/user/" + user + "/bus": true,
		"/tmp/tmux-" + user: true, temp + "/tmux-" + user: true,
		runtime: false, runtime + "/shown": false, runtime + "/coven-1": false, gate: false,
	} {
		if slices.Contains(b.Hide, path) != want {
			t.Errorf("%s: hidden %v", path, !want)
		}
	}
	if want := []string{gate, runtime + "/shown"}; !slices.Equal(b.Connect, want) {
		t.Errorf("sockets: %q, want %q", b.Connect, want)
	}
	u.env["XDG_RUNTIME_DIR"] = filepath.Dir(u.home)
	if b := u.room(t).Boundary(sandbox.Access{}); slices.Contains(b.Hide, u.home) || slices.Contains(b.Hide, u.repo) {
		t.Errorf("with a home in the runtime directory: %q", b.Hide)
	}
}

// Secrets are hidden where the user's variables say that they are.
func TestHiddenMoved(t *testing.T) {
	u := newUser(t)
	hidden := func() []string { return u.room(t).Boundary(sandbox.Access{}).Hide }
	for _, test := range []struct{ variable, value, path string }{
		{"CLAUDE_CONFIG_DIR", "/m/claude", "/m/claude"},
		{"CLAUDE_CONFIG_DIR", "/m/claude", "/m/claude/.credentials.json"},
		{"CLAUDE_CONFIG_DIR", "/m/claude", "/m/claude/.claude.json"},
		{"CLAUDE_SECURESTORAGE_CONFIG_DIR", "/m/store", "/m/store/.credentials.json"},
		{"CODEX_HOME", "/m/codex/", "/m/codex/auth.json"},
		{"GNUPGHOME", "/m/keys", "/m/keys"},
		{"PASSWORD_STORE_DIR", "/m/pass", "/m/pass"},
		{"KUBECONFIG", "/m/one:/m/two", "/m/one"},
		{"KUBECONFIG", "/m/one:/m/two", "/m/two"},
		{"AWS_SHARED_CREDENTIALS_FILE", "/m/aws", "/m/aws"},
		{"DOCKER_CONFIG", "/m/docker", "/m/docker/config.json"},
		{"CARGO_HOME", "/m/cargo", "/m/cargo/credentials.toml"},
		{"XDG_CONFIG_HOME", "/m/config", "/m/config/gh"},
		{"XDG_CONFIG_HOME", "/m/config", "/m/config/git/credentials"},
		{"XDG_DATA_HOME", "/m/data", "/m/data/keyrings"},
		{"XDG_STATE_HOME", "/m/state", "/m/state/coven"},
		{"npm_config_userconfig", "/m/x/../npmrc", "/m/npmrc"},
		{"HISTFILE", "/m/history", "/m/history"},
	} {
		u.env = map[string]string{"HOME": u.home, test.variable: test.value}
		if !slices.Contains(hidden(), test.path) {
			t.Errorf("%s=%s: %s is not hidden", test.variable, test.value, test.path)
		}
	}
	// The home directory and all above it stay visible, and so does all of a moved directory but its secrets.
	for _, value := range []string{"/", u.home, filepath.Dir(u.home), "relative", "~/x"} {
		u.env = map[string]string{"HOME": u.home, "GNUPGHOME": value, "KUBECONFIG": value, "CARGO_HOME": value}
		for _, path := range hidden() {
			if !filepath.IsAbs(path) || path == "/" || path == u.home || path == filepath.Dir(u.home) {
				t.Errorf("%s: %s is hidden", value, path)
			}
		}
	}
	moved := t.TempDir()
	if err := os.Mkdir(filepath.Join(moved, "local"), 0o700); err != nil {
		t.Fatal(err)
	}
	u.env = map[string]string{"HOME": u.home, "CLAUDE_CONFIG_DIR": moved, "CARGO_HOME": moved}
	if all := hidden(); slices.Contains(all, moved) || !slices.Contains(all, filepath.Join(moved, ".credentials.json")) {
		t.Errorf("with a CLI in it: %q", all)
	}
	u.settings.Hide = []string{"!/m/one"}
	u.env["KUBECONFIG"] = "/m/one"
	if slices.Contains(hidden(), "/m/one") {
		t.Error("a file that the user shows is hidden")
	}
}

// Each task has its own caches, except those that the user shares. Later values of a variable override
// earlier ones.
func TestEnv(t *testing.T) {
	u := newUser(t)
	if err := os.MkdirAll(filepath.Join(u.home, ".cache", "other"), 0o700); err != nil {
		t.Fatal(err)
	}
	value := func(env []string, name string) string {
		for _, kv := range env {
			if key, v, _ := strings.Cut(kv, "="); key == name {
				return v
			}
		}
		return ""
	}
	user := []string{"GOMODCACHE=" + u.home + "/mods", "TMPDIR=/theirs", "PATH=/bin"}
	u.env["GOMODCACHE"] = u.home + "/mods"
	env := sandbox.Merge(user, u.room(t).Env(user), []string{"STEP=1"})
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "npm_config_cache", "CARGO_HOME", "PIP_CACHE_DIR", "XDG_CACHE_HOME", "GRADLE_USER_HOME"} {
		dir := value(env, name)
		if info, err := os.Stat(dir); err != nil || !info.IsDir() || !strings.HasPrefix(dir, u.home+"/cache/tasks/") {
			t.Errorf("%s is %q: %v", name, dir, err)
		}
	}
	if dir := value(env, "MAVEN_ARGS"); !strings.HasPrefix(dir, "-Dmaven.repo.local="+u.home+"/cache/tasks/") {
		t.Errorf("MAVEN_ARGS is %q", dir)
	}
	if value(env, "TMPDIR") != u.home+"/tmp/task/tmp" || value(env, "PATH") != "/bin" || value(env, "STEP") != "1" {
		t.Errorf("%q", env)
	}
	if value(env, "GIT_CONFIG_COUNT") != "4" || value(env, "GIT_CONFIG_KEY_3") != "maintenance.auto" || value(env, "GIT_CONFIG_VALUE_3") != "false" {
		t.Errorf("git: %q", env)
	}
	u.settings.Write = []string{"~/.cache", u.home}
	if shared := u.room(t).Env(user); value(shared, "GOCACHE") != "" || value(shared, "GOMODCACHE") != "" || value(shared, "CARGO_HOME") != "" {
		t.Errorf("shared caches: %q", shared)
	}
	u.settings.Write = []string{"~/.cache"}
	if shared := u.room(t).Env(user); value(shared, "GOCACHE") != "" || value(shared, "GOMODCACHE") == "" || value(shared, "CARGO_HOME") == "" {
		t.Errorf("one shared cache: %q", shared)
	}
	if err := os.Mkdir(u.home+"/mods", 0o700); err != nil {
		t.Fatal(err)
	}
	u.settings.Write = []string{"~/mods"} // the directory in the user's variable
	if shared := u.room(t).Env(user); value(shared, "GOMODCACHE") != "" || value(shared, "GOCACHE") == "" {
		t.Errorf("one shared cache in a place of the user's: %q", shared)
	}
}

// cargo finds the user's settings. Caches are removed with the worktree, including
// read-only parts.
func TestCaches(t *testing.T) {
	u := newUser(t)
	link := filepath.Join(u.room(t).Boundary(sandbox.Access{}).Write[1], "cargo", "config.toml")
	if _, err := os.Lstat(link); !os.IsNotExist(err) {
		t.Errorf("a user without settings of cargo has some: %v", err)
	}
	settings := filepath.Join(u.home, ".cargo", "config.toml")
	if err := os.MkdirAll(filepath.Dir(settings), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(settings, []byte("# mirror\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	u.room(t)
	room := u.room(t) // a second time
	cache := room.Boundary(sandbox.Access{}).Write[1]
	text, err := os.ReadFile(filepath.Join(cache, "cargo", "config.toml"))
	if err != nil || string(text) != "# mirror\n" {
		t.Errorf("cargo's settings: %q, %v", text, err)
	}
	module := filepath.Join(cache, "go-mod", "example.com", "m@v1.0.0")
	if err := os.MkdirAll(module, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(module, "go.mod"), nil, 0o400); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(module, 0o500); err != nil {
		t.Fatal(err)
	}
	if err := u.sandbox().Forget("task"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(cache); !os.IsNotExist(err) {
		t.Errorf("the cache is still there: %v", err)
	}
	if _, err := os.Stat(settings); err != nil {
		t.Errorf("the user's settings: %v", err)
	}
}

// The settings accept exactly the caches in the table.
func TestCachesOfSettings(t *testing.T) {
	var names []string
	for _, kv := range newUser(t).room(t).Env(nil) {
		if name, value, _ := strings.Cut(kv, "="); strings.Contains(value, string(filepath.Separator)+"tasks"+string(filepath.Separator)) {
			names = append(names, name)
		}
	}
	if !slices.Equal(names, config.Caches()) {
		t.Errorf("the caches are %v, the settings name %v", names, config.Caches())
	}
}

// A private network reaches only the ports of coven and those on the list, each once. It is refused where it is impossible.
func TestPrivateNetwork(t *testing.T) {
	u := newUser(t)
	if b := u.room(t).Boundary(sandbox.Access{Ports: []int{1}}); b.Loopback != nil || u.sandbox().CheckNetwork() != nil {
		t.Errorf("the network is %+v, %v", b.Loopback, u.sandbox().CheckNetwork())
	}
	u.settings.Network = config.Network{"private", "localhost:5432"}
	room := u.room(t)
	room.Ports = []int{5432, 4000}
	if b := room.Boundary(sandbox.Access{Ports: []int{80, 4000}}); b.Loopback == nil || !slices.Equal(b.Loopback.Ports, []int{80, 4000, 5432}) {
		t.Errorf("the network is %+v", b.Loopback)
	}
	if _, b, err := u.sandbox().Plugins(u.home); err != nil || b.Loopback != nil {
		t.Errorf("plugins: %+v, %v", b, err)
	}
	if err := u.sandbox().CheckNetwork(); err != nil {
		t.Error(err)
	}
	u.private = errors.New("no namespaces")
	if err := u.sandbox().CheckNetwork(); !errors.Is(err, u.private) {
		t.Error(err)
	}
	u.private, u.kernel = nil, process.Enforcement{}
	if err := u.sandbox().CheckNetwork(); err == nil {
		t.Error("a private network without a sandbox")
	}
}

// A landed task passes the kept caches to one later task, even if it removed its own permissions
// to them. A cache that was replaced by a link or a file is not kept, and a task with its own cache
// keeps it.
func TestCachesKept(t *testing.T) {
	u := newUser(t)
	box := func(keep ...string) *sandbox.Sandbox {
		return sandbox.New(sandbox.Options{
			Getenv: func(name string) string { return u.env[name] }, Enforcement: func() process.Enforcement { return u.kernel },
			Temp: filepath.Join(u.home, "tmp"), Cache: filepath.Join(u.home, "cache"), Keep: keep, Root: u.repo, GitDir: filepath.Join(u.repo, ".git"),
		})
	}
	all := []string{"GOCACHE", "npm_config_cache", "PIP_CACHE_DIR"}
	in := func(name string) string {
		room, err := box(all...).Room(name)
		if err != nil {
			t.Fatal(err)
		}
		return room.Boundary(sandbox.Access{}).Write[1]
	}
	found := func(cache string) string {
		files, err := filepath.Glob(filepath.Join(cache, "*", "left-*"))
		if err != nil {
			t.Fatal(err)
		}
		for i, file := range files {
			files[i] = strings.TrimPrefix(file, cache+"/")
		}
		return strings.Join(files, " ")
	}
	outside := t.TempDir()
	first := in("first")
	for _, name := range []string{"go-build", "npm", "cargo"} {
		if err := os.WriteFile(filepath.Join(first, name, "left-first"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Chmod(filepath.Join(first, "npm"), 0), os.RemoveAll(filepath.Join(first, "pip")), os.Symlink(outside, filepath.Join(first, "pip"))); err != nil {
		t.Fatal(err)
	}
	second := in("second")
	if err := os.WriteFile(filepath.Join(second, "go-build", "left-second"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := box(all...).ForgetLanded("first"); err != nil {
		t.Fatal(err)
	}
	if got := found(in("second")); got != "go-build/left-second" {
		t.Errorf("the task that has a cache now has %q", got)
	}
	if got := found(in("third")); got != "go-build/left-first npm/left-first" {
		t.Errorf("the next task has %q", got)
	}
	if info, err := os.Lstat(filepath.Join(in("third"), "pip")); err != nil || !info.IsDir() {
		t.Errorf("a link was kept: %v", err)
	}
	for _, name := range []string{"second", "third"} {
		if err := box(all...).ForgetLanded(name); err != nil {
			t.Fatal(err)
		}
	}
	if got := found(in("fourth")); got != "go-build/left-first npm/left-first" {
		t.Errorf("the task after both has %q", got)
	}
	if err := errors.Join(box(all...).ForgetLanded("fourth"), box("GOCACHE").ForgetLanded("none")); err != nil {
		t.Fatal(err)
	}
	if got := found(in("fifth")); got != "go-build/left-first" {
		t.Errorf("without npm in the list, the next task has %q", got)
	}
	left, err := os.ReadDir(sandbox.Caches(filepath.Join(u.home, "cache"), filepath.Join(u.repo, ".git")))
	if err != nil || len(left) != 2 { // the one of the fifth task, and the kept ones
		t.Errorf("left: %v, %v", left, err)
	}
}

// Caches that a task's program replaced neither redirect coven nor prevent the next program from
// running.
func TestCachesReplaced(t *testing.T) {
	u := newUser(t)
	settings, outside := filepath.Join(u.home, ".cargo", "config.toml"), t.TempDir()
	if err := errors.Join(os.MkdirAll(filepath.Dir(settings), 0o700), os.WriteFile(settings, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	cache := u.room(t).Boundary(sandbox.Access{}).Write[1]
	for _, name := range []string{"cargo", "npm", "pip"} {
		if err := os.RemoveAll(filepath.Join(cache, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink(outside, filepath.Join(cache, "cargo")), os.Symlink("/nowhere", filepath.Join(cache, "npm")),
		os.WriteFile(filepath.Join(cache, "pip"), nil, 0o600), os.Chmod(cache, 0)); err != nil {
		t.Fatal(err)
	}
	u.room(t)
	for _, name := range []string{"cargo", "npm", "pip"} {
		if info, err := os.Lstat(filepath.Join(cache, name)); err != nil || !info.IsDir() {
			t.Errorf("%s is no directory: %v", name, err)
		}
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
		t.Errorf("outside: %v, %v", entries, err)
	}
}

// The level and the gaps depend on the kernel.
func TestLevel(t *testing.T) {
	for _, c := range []struct {
		kernel process.Enforcement
		level  sandbox.Level
		gaps   int
	}{
		{process.Enforcement{}, sandbox.None, 1},
		{process.Enforcement{Covers: true}, sandbox.None, 1},
		{process.Enforcement{Profile: true}, sandbox.Partial, 1},
		{process.Enforcement{ABI: 1, Covers: true}, sandbox.Partial, 3},
		{process.Enforcement{ABI: 2}, sandbox.Partial, 4},
		{process.Enforcement{ABI: 3, Covers: true}, sandbox.Partial, 2},
		{process.Enforcement{ABI: 5, Covers: true}, sandbox.Partial, 2},
		{process.Enforcement{ABI: 6}, sandbox.Partial, 2},
		{process.Enforcement{ABI: 6, Covers: true}, sandbox.Full, 1},
		{process.Enforcement{ABI: 9, Covers: true}, sandbox.Full, 0},
	} {
		u := newUser(t)
		u.kernel = c.kernel
		if s := u.sandbox(); s.Level() != c.level || len(s.Gaps()) != c.gaps {
			t.Errorf("%+v: %s, %q", c.kernel, s.Level(), s.Gaps())
		}
	}
}

// The sandbox protects the main checkout and the repository, unless the user makes them writable.
func TestFences(t *testing.T) {
	u := newUser(t)
	link := filepath.Join(u.home, "link")
	if err := os.Symlink(u.repo, link); err != nil {
		t.Fatal(err)
	}
	elsewhere := filepath.Join(u.home, "elsewhere")
	if err := os.Mkdir(elsewhere, 0o700); err != nil {
		t.Fatal(err)
	}
	for write, want := range map[string]bool{
		"": true, elsewhere: true, filepath.Join(u.repo, "missing"): true,
		"/": false, u.repo: false, filepath.Join(u.repo, ".git"): false, link: false, filepath.Dir(u.repo): false,
	} {
		u.settings.Write = nil
		if write != "" {
			u.settings.Write = []string{write}
		}
		if got := u.sandbox().Fences(); got != want {
			t.Errorf("write %q: %v", write, got)
		}
	}
	u.gitDir = filepath.Join(elsewhere, "git") // for a checkout whose .git is a file
	for write, want := range map[string]bool{u.repo: false, elsewhere: false, filepath.Join(u.home, "third"): true} {
		if err := os.MkdirAll(write, 0o700); err != nil {
			t.Fatal(err)
		}
		u.settings.Write = []string{write}
		if got := u.sandbox().Fences(); got != want {
			t.Errorf("git directory elsewhere, write %q: %v", write, got)
		}
	}
	u.settings.Write, u.kernel = nil, process.Enforcement{}
	if u.sandbox().Fences() {
		t.Error("without Landlock")
	}
}
