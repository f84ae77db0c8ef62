package sandbox

import (
	"path/filepath"
	"slices"
	"strings"
)

// movedDirs lists the variables that move a directory of the user, each with the usual place of the directory.
func movedDirs() [][2]string {
	return [][2]string{
		{"XDG_CONFIG_HOME", "~/.config"},
		{"XDG_CACHE_HOME", "~/.cache"},
		{"HF_HOME", "~/.cache/huggingface"},
		{"GOPATH", "~/go"},
		{"XDG_DATA_HOME", "~/.local/share"},
		{"XDG_STATE_HOME", "~/.local/state"},
		{"GNUPGHOME", "~/.gnupg"},
		{"PASSWORD_STORE_DIR", "~/.password-store"},
		{"OP_CONFIG_DIR", "~/.config/op"},
		{"AZURE_CONFIG_DIR", "~/.azure"},
		{"CLOUDSDK_CONFIG", "~/.config/gcloud"},
		{"DOCKER_CONFIG", "~/.docker"},
		{"GH_CONFIG_DIR", "~/.config/gh"},
		{"GLAB_CONFIG_DIR", "~/.config/glab-cli"},
		{"CARGO_HOME", "~/.cargo"},
		{"GRADLE_USER_HOME", "~/.gradle"},
		{"COMPOSER_HOME", "~/.config/composer"},
		{"CLAUDE_CONFIG_DIR", "~/.claude"},
		{"CLAUDE_SECURESTORAGE_CONFIG_DIR", "~/.claude"},
		{"CODEX_HOME", "~/.codex"},
	}
}

// movedFiles lists the variables that name files with credentials. A value may be a list of files.
func movedFiles() []string {
	return []string{
		"KUBECONFIG", "AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE", "AWS_WEB_IDENTITY_TOKEN_FILE", "GOOGLE_APPLICATION_CREDENTIALS",
		"OCI_CLI_CONFIG_FILE", "REGISTRY_AUTH_FILE", "TF_CLI_CONFIG_FILE", "BOTO_CONFIG", "S3CMD_CONFIG",
		"NPM_CONFIG_USERCONFIG", "npm_config_userconfig", "NETRC", "PGPASSFILE", "SOPS_AGE_KEY_FILE", "ANSIBLE_VAULT_PASSWORD_FILE",
		"HISTFILE", "PYTHON_HISTORY", "NODE_REPL_HISTORY", "PSQL_HISTORY", "MYSQL_HISTFILE",
	}
}

// moved returns the paths of the user's secrets in the places that variables name.
func (s *Sandbox) moved() []string {
	var paths []string
	for _, secret := range secrets() {
		paths = append(paths, s.movedPaths(secret)...)
	}
	for _, variable := range movedFiles() {
		paths = append(paths, filepath.SplitList(s.o.Getenv(variable))...)
	}
	for _, dir := range s.movedPaths("~/.claude") {
		paths = append(paths, filepath.Join(dir, ".claude.json")) // usually beside the directory
	}
	home := s.expand("~")
	return slices.DeleteFunc(paths, func(path string) bool {
		return !filepath.IsAbs(path) || home != "" && within(home, []string{path})
	})
}

// movedPaths returns the places of a path when variables move a directory that contains it.
func (s *Sandbox) movedPaths(path string) []string {
	var paths []string
	for _, move := range movedDirs() {
		dir := s.o.Getenv(move[0])
		rest, below := strings.CutPrefix(path+"/", move[1]+"/")
		if below && filepath.IsAbs(dir) {
			paths = append(paths, filepath.Join(dir, rest))
		}
	}
	return paths
}
