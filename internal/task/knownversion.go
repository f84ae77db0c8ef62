package task

import (
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/coven-run/coven/internal/file/regularfile"
)

// knownVersion is the version that a program printed, with the identity of the program's file. It saves a run of the program
// in most processes.
type knownVersion struct {
	Program string `json:"program"` // path, without links
	Size    int64  `json:"size"`
	Time    int64  `json:"mtime_ns"`
	Version string `json:"version"`
}

// identify returns a knownVersion without a version. It is zero if the program's file cannot be identified.
func identify(program string) knownVersion {
	path, err := filepath.EvalSymlinks(program)
	if err != nil {
		return knownVersion{}
	}
	info, err := os.Stat(path)
	if err != nil {
		return knownVersion{}
	}
	return knownVersion{Program: path, Size: info.Size(), Time: info.ModTime().UnixNano()}
}

// recall returns the version that is stored for the program as it is now, or "".
func (c *CLI) recall() string {
	var known knownVersion
	text, err := regularfile.Read(c.versionFile, maxSetting)
	if err != nil || json.Unmarshal(text, &known) != nil {
		return ""
	}
	version := known.Version
	if known.Version = ""; known != identify(c.program) {
		return ""
	}
	return version
}

// remember stores the version of the program. It ignores errors, because the program can be run again.
func (c *CLI) remember(version string) {
	known := identify(c.program)
	if known.Version = version; c.versionFile == "" || version == "" || known.Program == "" {
		return
	}
	text, err := json.Marshal(known)
	if err != nil || os.MkdirAll(filepath.Dir(c.versionFile), 0o755) != nil {
		return
	}
	_ = regularfile.Replace(c.versionFile, append(text, '\n'), 0o600)
}
