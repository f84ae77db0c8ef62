package egress

import (
	"io"
	"path/filepath"
	"strings"

	"github.com/coven-run/coven/internal/file/regularfile"
)

// Setting is a package manager's setting with one or more URLs.
type Setting struct {
	Key, Value string // registry, https://npm.example.com/
	File       string
}

// Settings are the user's settings of package managers.
type Settings []Setting

// settingsFile is a file of settings, relative to the home directory.
type settingsFile struct {
	path string
	// variable, if set in the environment, contains the name of the file or, if in is not empty, of the
	// directory with the file in.
	variable, in string
	// wants reports whether the value of a key contains URLs of packages.
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

// maxSettings limits the part of a file that is read, in bytes.
const maxSettings = 1 << 20

// ReadSettings reads the settings of npm, pip, Cargo and Go from the user's home directory,
// or from the locations in the variables of these programs. It skips unreadable files, because the
// program that owns them reports the error.
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

// locate returns the path of the file, or "" if the variable disables it.
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

// readText returns the content of a regular file, or "".
func readText(file string) string {
	f, err := regularfile.Open(file)
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

// parseSettings parses lines of the form KEY = VALUE, which are common to .npmrc, pip.conf, TOML and go/env.
// Indented lines without a key continue the value, as in pip.conf.
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

// unquote removes the quotes of a quoted value and a comment after it.
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
