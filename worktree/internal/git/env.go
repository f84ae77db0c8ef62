package git

import (
	"os"
	"slices"
	"strconv"
	"strings"
)

// kept returns the GIT_ variables that git inherits from coven's environment: those about the person, the
// network and the person's settings. A trailing * matches any suffix. Others could select another repository,
// index or program; see Dropped.
func kept() []string {
	return []string{
		"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL",
		"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_KEY_*", "GIT_CONFIG_VALUE_*", "GIT_ATTR_NOSYSTEM",
		"GIT_SSH", "GIT_SSH_*", "GIT_ASKPASS", "GIT_HTTP_*", "GIT_SSL_*", "GIT_PROXY_*", "GIT_ALLOW_PROTOCOL", "GIT_PROTOCOL_FROM_USER",
		"GIT_CEILING_DIRECTORIES", "GIT_EXEC_PATH", "GIT_LFS_*",
	}
}

// Dropped returns the names of the variables in environ that would select a repository, or parts of one, for a git
// that runs by hand. coven's git does not get them.
func Dropped(environ []string) (names []string) {
	selecting := []string{
		"GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES",
		"GIT_NAMESPACE", "GIT_SHALLOW_FILE", "GIT_GRAFT_FILE", "GIT_REPLACE_REF_BASE", "GIT_CONFIG", "GIT_CONFIG_PARAMETERS",
	}
	for _, entry := range environ {
		if name, value, _ := strings.Cut(entry, "="); value != "" && slices.Contains(selecting, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
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
	env = append(env, settingsEnv(userSettings(), append(neutral(), r.Settings...))...)
	return append(env, r.Env...)
}

// inherited leaves out an empty identity, which git would refuse: the configured one counts.
func inherited() []string {
	var env []string
	for _, entry := range os.Environ() {
		if name, value, _ := strings.Cut(entry, "="); !strings.HasPrefix(name, "GIT_") || isKept(name) && (value != "" || !isIdentity(name)) {
			env = append(env, entry)
		}
	}
	return env
}

func isIdentity(name string) bool {
	return strings.HasPrefix(name, "GIT_AUTHOR_") || strings.HasPrefix(name, "GIT_COMMITTER_")
}

func isKept(name string) bool {
	return slices.ContainsFunc(kept(), func(k string) bool {
		prefix, open := strings.CutSuffix(k, "*")
		return name == k || open && strings.HasPrefix(name, prefix)
	})
}

// userSettings returns the number of settings in coven's environment: GIT_CONFIG_KEY_0 and so on. If git would refuse
// the number, it is 0.
func userSettings() int {
	n, err := strconv.Atoi(os.Getenv("GIT_CONFIG_COUNT"))
	if err != nil || n < 0 || n > maxUserSettings {
		return 0
	}
	return n
}

// maxUserSettings is an arbitrary large limit.
const maxUserSettings = 10_000

// settingsEnv returns the variables of settings that follow, and override, the given number of the user's.
func settingsEnv(after int, settings []Setting) []string {
	env := []string{"GIT_CONFIG_COUNT=" + strconv.Itoa(after+len(settings))}
	for i, s := range settings {
		n := strconv.Itoa(after + i)
		env = append(env, "GIT_CONFIG_KEY_"+n+"="+s.Key, "GIT_CONFIG_VALUE_"+n+"="+s.Value)
	}
	return env
}
