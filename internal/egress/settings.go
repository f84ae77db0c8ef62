package egress

import (
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Setting is a value in the user's settings of a package manager: one URL or several.
type Setting struct {
	Key, Value string // registry, https://npm.example.com/
	File       string
}

// Settings are the user's settings of package managers.
type Settings []Setting

// settingsFile is a file of settings, relative to the home directory.
type settingsFile struct {
	path string
	// variable, if set in the environment, names the file instead, or the directory that in
	// is below.
	variable, in string
	// wants reports whether the value of a key is a URL of packages.
	wants func(key string) bool
}

var settingsFiles = []settingsFile{
	// https://docs.npmjs.com/cli/configuring-npm/npmrc: registry, @scope:registry
	{".npmrc", "npm_config_userconfig", "", func(key string) bool { return key == "registry" || strings.HasSuffix(key, ":registry") }},
	// https://pip.pypa.io/en/stable/topics/configuration/
	{".config/pip/pip.conf", "PIP_CONFIG_FILE", "", isIndex},
	{".config/pip/pip.conf", "XDG_CONFIG_HOME", "pip/pip.conf", isIndex},
	{".pip/pip.conf", "", "", isIndex},
	// https://doc.rust-lang.org/cargo/reference/config.html: registries.NAME.index, source.NAME.registry
	{".cargo/config.toml", "CARGO_HOME", "config.toml", isCargoIndex},
	{".cargo/config", "CARGO_HOME", "config", isCargoIndex},
	// https://pkg.go.dev/cmd/go#hdr-Environment_variables: go env -w
	{".config/go/env", "GOENV", "", isGoHost},
	{".config/go/env", "XDG_CONFIG_HOME", "go/env", isGoHost},
	{"Library/Application Support/go/env", "GOENV", "", isGoHost},
}

func isIndex(key string) bool {
	return key == "index-url" || key == "extra-index-url" || key == "find-links"
}

func isCargoIndex(key string) bool {
	return key == "index" || key == "registry" || strings.HasSuffix(key, ".index") || strings.HasSuffix(key, ".registry")
}

func isGoHost(key string) bool { return key == "GOPROXY" || key == "GOSUMDB" }

// maxSettings limits how much of a file is read, in bytes.
const maxSettings = 1 << 20

// ReadSettings reads the settings of npm, pip, Cargo and Go below the user's home directory,
// or where the variables of these programs in environ lead. Files that cannot be read are skipped: the
// program that they belong to reports them.
func ReadSettings(home string, environ []string) Settings {
	env := map[string]string{}
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		env[name] = value
	}
	var all Settings
	seen := map[string]bool{}
	for _, f := range settingsFiles {
		file := f.locate(home, env)
		if file == "" || seen[file] {
			continue
		}
		seen[file] = true
		all = append(all, parseSettings(readText(file), file, f.wants)...)
	}
	return all
}

// locate returns the path of the file, or "" if the variable says that there is none.
func (f settingsFile) locate(home string, env map[string]string) string {
	switch value := env[f.variable]; value {
	case "":
		return filepath.Join(home, f.path)
	case "off":
		return ""
	default:
		return filepath.Join(value, f.in)
	}
}

// readText returns a regular file, or nothing.
func readText(file string) string {
	if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close() //nolint:errcheck // nothing was written
	text, err := io.ReadAll(io.LimitReader(f, maxSettings))
	if err != nil {
		return ""
	}
	return string(text)
}

// parseSettings reads lines of the form KEY = VALUE, which .npmrc, pip.conf, TOML and go/env
// have in common. Lines that are indented and have no key continue the value, as in pip.conf.
func parseSettings(text, file string, wants func(key string) bool) Settings {
	var all Settings
	wanted, name := false, ""
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		if trimmed == "" || strings.ContainsRune("#;[", rune(trimmed[0])) {
			wanted = false
			continue
		}
		key, value, ok := strings.Cut(trimmed, "=")
		switch indented := line[0] == ' ' || line[0] == '\t'; {
		case wanted && indented && (!ok || strings.Contains(key, "://")):
			value = trimmed
		case ok:
			name = strings.Trim(strings.TrimSpace(key), `"'`)
			wanted = wants(name)
		default:
			wanted = false
		}
		if value = unquote(strings.TrimSpace(value)); wanted && value != "" {
			all = append(all, Setting{name, value, file})
		}
	}
	return all
}

// unquote returns a value without quotes and without a comment behind them.
func unquote(value string) string {
	if value == "" || value[0] != '"' && value[0] != '\'' {
		return value
	}
	inner, _, ok := strings.Cut(value[1:], value[:1])
	if !ok {
		return value
	}
	return inner
}
