package git

import (
	"os"
	"strconv"
	"strings"
)

// kept reports whether git inherits a GIT_ variable from coven's environment. Other variables could select
// another repository, index or program.
func kept(name string) bool {
	switch name {
	case "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL",
		"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM",
		"GIT_CEILING_DIRECTORIES", "GIT_EXEC_PATH":
		return true
	}
	return false
}

// neutral returns the settings of every run. When a ref transaction ends, the objects that a record may
// name are on disk, regardless of the user's settings: objects are written out at once, and Transact
// flushes the disk with all earlier writes. (With fsyncMethod=batch, git 2.39 silently loses objects when
// another git process removes an empty object directory.)
func neutral() []Setting {
	return []Setting{
		{"core.hooksPath", "/dev/null"},
		{"core.fsmonitor", "false"},
		{"core.ignoreStat", "false"},
		{"core.trustctime", "true"},
		{"core.checkStat", "default"},
		{"core.safecrlf", "false"},
		{"core.quotePath", "false"},
		{"core.fsync", "committed,reference"},
		{"core.fsyncMethod", "writeout-only"},
		{"core.filesRefLockTimeout", "10000"},
		{"core.packedRefsTimeout", "10000"},
		{"commit.gpgSign", "false"},
		{"tag.gpgSign", "false"},
		{"gc.auto", "0"},
		{"maintenance.auto", "false"},
		{"submodule.recurse", "false"},
		{"i18n.commitEncoding", "UTF-8"},
	}
}

func (r Repo) environ() []string {
	env := inherited()
	env = append(env,
		"LC_ALL=C",
		"GIT_TERMINAL_PROMPT=0",
		"GIT_OPTIONAL_LOCKS=0",
		"GIT_LITERAL_PATHSPECS=1",
		"GIT_NO_REPLACE_OBJECTS=1",
	)
	if r.Index != "" {
		env = append(env, "GIT_INDEX_FILE="+r.Index)
	}
	if r.ObjectDir != "" {
		env = append(env, "GIT_OBJECT_DIRECTORY="+r.ObjectDir)
	}
	env = append(env, settingsEnv(append(neutral(), r.Settings...))...)
	return append(env, r.Env...)
}

func inherited() []string {
	var env []string
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, "GIT_") || kept(name) {
			env = append(env, entry)
		}
	}
	return env
}

func settingsEnv(settings []Setting) []string {
	env := []string{"GIT_CONFIG_COUNT=" + strconv.Itoa(len(settings))}
	for i, s := range settings {
		n := strconv.Itoa(i)
		env = append(env, "GIT_CONFIG_KEY_"+n+"="+s.Key, "GIT_CONFIG_VALUE_"+n+"="+s.Value)
	}
	return env
}
