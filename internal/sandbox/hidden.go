package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// secrets lists the paths that programs of a task cannot read by default: credentials of the user.
func secrets() []string {
	return []string{
		// keys and passwords
		"~/.ssh", "~/.gnupg", "~/.password-store", "~/.local/share/keyrings", "~/.config/op", "~/.config/1Password",
		"~/.netrc", "~/.git-credentials", "~/.config/git/credentials", "~/.vault-token", "~/.config/sops", "~/.age",
		// clouds and clusters
		"~/.aws", "~/.azure", "~/.config/gcloud", "~/.config/doctl", "~/.config/hcloud", "~/.oci", "~/.kube", "~/.docker/config.json",
		"~/.config/containers/auth.json", "~/.terraform.d/credentials.tfrc.json", "~/.terraformrc", "~/.boto", "~/.s3cfg",
		// forges and package registries
		"~/.config/gh", "~/.config/hub", "~/.config/glab-cli", "~/.npmrc", "~/.yarnrc.yml", "~/.pypirc", "~/.cargo/credentials", "~/.cargo/credentials.toml",
		"~/.gem/credentials", "~/.m2/settings.xml", "~/.m2/settings-security.xml", "~/.gradle/gradle.properties", "~/.nuget/NuGet/NuGet.Config",
		"~/.composer/auth.json", "~/.config/composer/auth.json", "~/.cache/huggingface/token", "~/.cache/huggingface/stored_tokens",
		// agents, browsers, histories; single files are for a directory that also contains the CLI
		"~/.claude", "~/.codex", "~/.qwen", "~/.gemini", "~/.claude.json", "~/.claude/.credentials.json", "~/.claude/settings.json", "~/.claude/projects", "~/.claude/history.jsonl", "~/.claude/file-history",
		"~/.codex/auth.json", "~/.codex/sessions", "~/.codex/history.jsonl", "~/.qwen/oauth_creds.json", "~/.qwen/settings.json", "~/.qwen/projects",
		"~/.gemini/oauth_creds.json", "~/.gemini/settings.json", "~/.local/share/opencode",
		"~/.mozilla", "~/.config/google-chrome", "~/.config/chromium", "~/.config/BraveSoftware",
		"~/.local/state/coven", // history of chats, and locks of checks, which a program could hold
		"~/.bash_history", "~/.zsh_history", "~/.python_history", "~/.node_repl_history", "~/.psql_history", "~/.mysql_history", "~/.pgpass", "~/.my.cnf",
	}
}

// sockets lists sockets that lead out of the sandbox, and directories of them: those of other users, and those
// that may appear while a program runs. With mounts, package process hides the user's sockets that exist when the
// program starts, wherever they are.
func (s *Sandbox) sockets() []string {
	paths := []string{
		"/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock", "/run/podman/podman.sock", "/run/crio/crio.sock",
		"/run/snapd.socket", "/run/dbus/system_bus_socket", "/run/systemd/private", "~/.docker/run/docker.sock",
		"/run/screen", "~/.screen", "~/.emacs.d/server", "~/.local/share/wezterm", "~/.1password",
	}
	for _, dir := range s.runtimeDirs() {
		for _, name := range []string{"bus", "systemd", "docker.sock", "podman", "gnupg", "keyring", "gcr", "ssh-agent.socket", "openssh_agent", "wayland-0", "pipewire-0", "pulse"} {
			paths = append(paths, filepath.Join(dir, name))
		}
	}
	for _, dir := range []string{"/tmp", s.o.Getenv("TMPDIR"), s.o.Getenv("TMUX_TMPDIR")} {
		for _, name := range []string{".X11-unix", ".ICE-unix", "tmux-" + userID(), "emacs" + userID(), "zellij-" + userID(), "nvim." + s.o.Getenv("USER"), "screens"} {
			if filepath.IsAbs(dir) {
				paths = append(paths, filepath.Join(dir, name))
			}
		}
	}
	if socket := s.o.Getenv("SSH_AUTH_SOCK"); filepath.IsAbs(socket) {
		paths = append(paths, socket)
	}
	return paths
}

// userID returns the number of the user, which is in the names of directories of sockets.
func userID() string { return strconv.Itoa(os.Getuid()) }

// runtimeDirs returns the directories with the sockets and other files of the user's running programs.
func (s *Sandbox) runtimeDirs() []string {
	dirs := []string{"/run/user/" + userID()}
	if dir := s.o.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		dirs = append(dirs, dir)
	}
	return dirs
}

// runtimeFiles returns the files in the runtime directories, unless a directory contains the user's home.
func (s *Sandbox) runtimeFiles() []string {
	var paths []string
	for _, dir := range s.runtimeDirs() {
		entries, err := os.ReadDir(dir)
		if home := s.expand("~"); err != nil || home != "" && within(home, []string{dir}) {
			continue
		}
		for _, entry := range entries {
			paths = append(paths, filepath.Join(dir, entry.Name()))
		}
	}
	return paths
}

// shownSockets returns the sockets, and directories of them, that the user's settings show.
func (s *Sandbox) shownSockets() []string {
	var paths []string
	for _, path := range s.shown() {
		if info, err := os.Stat(path); err == nil && (info.IsDir() || info.Mode()&os.ModeSocket != 0) {
			paths = append(paths, path)
		}
	}
	return paths
}

// records lists coven's files with secrets or with the records of other tasks.
func (s *Sandbox) records() []string {
	return []string{
		filepath.Join(s.o.Root, ".coven", "secrets.yaml"), filepath.Join(s.o.Root, ".coven", "sessions"),
		filepath.Join(s.o.GitDir, "coven", "private"), filepath.Join(s.o.GitDir, "coven", "private-"+strconv.Itoa(os.Geteuid())), // see Repo.OwnStatePath
		filepath.Join(s.o.GitDir, "coven", "records"),
	}
}

// programs lists the locations of agent CLIs inside directories that are otherwise hidden.
func (s *Sandbox) programs() []string {
	var found []string
	for _, usual := range []string{"~/.claude/local", "~/.codex/bin", "~/.qwen/bin", "~/.gemini/bin"} {
		for _, path := range append(s.movedPaths(usual), s.expand(usual)) {
			if _, err := os.Stat(path); err == nil {
				found = append(found, path)
			}
		}
	}
	return found
}

// shown returns the paths that the user's settings show.
func (s *Sandbox) shown() []string {
	var paths []string
	for _, setting := range s.o.Settings.Hide {
		if path, ok := strings.CutPrefix(setting, "!"); ok {
			paths = append(paths, s.expand(path))
		}
	}
	return paths
}

// Hides reports whether programs cannot read a file, judging only by its path.
func (s *Sandbox) Hides(path string) bool { return within(path, s.hidden(nil, nil)) }

// hidden returns the paths that a program cannot read, including the given ones. It omits a directory that
// contains one of the needed paths or the repository.
func (s *Sandbox) hidden(needed, more []string) []string {
	settings := slices.Concat(secrets(), s.moved(), s.sockets(), s.records(), more, s.o.Settings.Hide)
	shown := s.shown()
	needed = slices.Concat(needed, s.programs(), []string{s.o.GitDir})
	var paths []string
	for _, setting := range settings {
		path := ""
		if !strings.HasPrefix(setting, "!") {
			path = s.expand(setting)
		}
		if path == "" || slices.Contains(shown, path) || slices.Contains(paths, path) {
			continue
		}
		if !slices.ContainsFunc(needed, func(need string) bool { return within(need, []string{path}) }) {
			paths = append(paths, path)
		}
	}
	return paths
}
