package sandbox

import (
	"os"
	"path/filepath"
	"slices"
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
		"~/.composer/auth.json", "~/.config/composer/auth.json",
		// agents, browsers, histories; single files are for a directory that also contains the CLI
		"~/.claude", "~/.codex", "~/.qwen", "~/.gemini", "~/.claude.json", "~/.claude/.credentials.json", "~/.claude/settings.json", "~/.claude/projects", "~/.claude/history.jsonl", "~/.claude/file-history",
		"~/.codex/auth.json", "~/.codex/sessions", "~/.codex/history.jsonl", "~/.qwen/oauth_creds.json", "~/.qwen/settings.json", "~/.qwen/projects",
		"~/.gemini/oauth_creds.json", "~/.gemini/settings.json", "~/.local/share/opencode",
		"~/.mozilla", "~/.config/google-chrome", "~/.config/chromium", "~/.config/BraveSoftware",
		"~/.bash_history", "~/.zsh_history", "~/.python_history", "~/.node_repl_history", "~/.psql_history", "~/.mysql_history", "~/.pgpass", "~/.my.cnf",
	}
}

// sockets lists sockets that lead out of the sandbox. Below ABI 9, Landlock does not prevent
// connections to visible sockets.
func (s *Sandbox) sockets() []string {
	paths := []string{
		"/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock", "/run/podman/podman.sock", "/run/crio/crio.sock",
		"/run/snapd.socket", "/run/dbus/system_bus_socket", "/run/systemd/private", "/tmp/.X11-unix", "~/.docker/run/docker.sock",
	}
	if dir := s.o.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		for _, name := range []string{"bus", "systemd", "docker.sock", "podman", "gnupg", "keyring", "gcr", "ssh-agent.socket", "openssh_agent", "wayland-0", "pipewire-0", "pulse"} {
			paths = append(paths, filepath.Join(dir, name))
		}
	}
	if socket := s.o.Getenv("SSH_AUTH_SOCK"); filepath.IsAbs(socket) {
		paths = append(paths, socket)
	}
	return paths
}

// records lists coven's files with secrets or with the records of other tasks.
func (s *Sandbox) records() []string {
	return []string{filepath.Join(s.o.Root, ".coven", "secrets.yaml"), filepath.Join(s.o.Root, ".coven", "sessions")}
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

// Hides reports whether programs cannot read a file, judging only by its path.
func (s *Sandbox) Hides(path string) bool { return within(path, s.hidden(nil)) }

// hidden returns the paths that a program cannot read. It omits a directory that contains one of the
// needed paths or the repository.
func (s *Sandbox) hidden(needed []string) []string {
	settings := slices.Concat(secrets(), s.moved(), s.sockets(), s.records(), s.o.Settings.Hide)
	var shown []string
	for _, setting := range settings {
		if path, ok := strings.CutPrefix(setting, "!"); ok {
			shown = append(shown, s.expand(path))
		}
	}
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
