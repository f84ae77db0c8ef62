package git

import (
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/coven-run/coven/worktree/internal/file"
)

// MinimalConfig returns the configuration of a git directory that only contains the format of its objects.
func MinimalConfig(format string, bare bool) string {
	version, extensions := "0", ""
	if format == "sha256" {
		version, extensions = "1", "[extensions]\n\tobjectformat = sha256\n"
	}
	return "[core]\n\trepositoryformatversion = " + version + "\n\tbare = " + strconv.FormatBool(bare) + "\n" + extensions
}

// PrepareDir writes the files of a minimal git directory, unless they exist. Its HEAD is on a branch that does
// not exist.
func PrepareDir(dir, config string, files map[string]string) error {
	all := map[string]string{"HEAD": "ref: refs/heads/none\n", "config": config}
	maps.Copy(all, files)
	for name, content := range all {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := file.WriteIfChanged(path, content); err != nil {
			return err
		}
	}
	return nil
}

// ConfigText returns a configuration file with the settings that `git config -z --list` prints.
func ConfigText(settings []string) string {
	var text strings.Builder
	for _, setting := range settings {
		key, value, assigned := strings.Cut(setting, "\n")
		section, name, _ := strings.Cut(key, ".")
		if at := strings.LastIndexByte(name, '.'); at >= 0 {
			section, name = section+" "+quoted(name[:at]), name[at+1:]
		}
		text.WriteString("[" + section + "]\n\t" + name)
		if assigned {
			text.WriteString(" = " + quoted(value))
		}
		text.WriteByte('\n')
	}
	return text.String()
}

// quoted quotes a value for a git configuration file.
func quoted(value string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(value) + `"`
}
