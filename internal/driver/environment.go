package driver

import (
	"slices"
	"strings"
)

// inherited lists the variables that every child inherits from the user's environment.
// Programs need them to run, and none holds a credential. A trailing * matches any suffix.
var inherited = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TERM", "COLORTERM",
	"TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
	"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS",
	"GOPATH", "GOCACHE", "GOMODCACHE", "GOPROXY", "GOFLAGS", "CARGO_HOME", "RUSTUP_HOME", "JAVA_HOME", "NVM_DIR", "PYENV_ROOT",
}

// identity lists the variables that identify the session of an agent CLI to its children. If coven itself was started by
// an agent, its own agents must not take part in that session, so patterns do not match these variables. A trailing *
// matches any suffix. They were read from Claude Code 2.1.332.
var identity = []string{
	"CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT", "CLAUDE_CODE_SESSION*", "CLAUDE_CODE_CHILD_*", "CLAUDE_CODE_PARENT_*",
	"CLAUDE_CODE_REMOTE*", "CLAUDE_CODE_BRIDGE_*", "CLAUDE_CODE_CCR_*", "CLAUDE_CODE_CLOUD_SESSION_ID", "CLAUDE_CODE_CONTAINER_ID",
	"CLAUDE_CODE_AGENT", "CLAUDE_CODE_AGENT_ID", "CLAUDE_CODE_AGENT_NAME", "CLAUDE_CODE_TEAM*", "CLAUDE_CODE_TASK_LIST_ID",
	"CLAUDE_CODE_PLAN_MODE_REQUIRED", "CLAUDE_CODE_COORDINATOR_*", "CLAUDE_CODE_WORKER_*", "CLAUDE_CODE_PROJECTS_SESSION",
	"CLAUDE_CODE_RESUME_FROM_SESSION", "CLAUDE_CODE_RESUME_INTERRUPTED_TURN", "CLAUDE_CODE_RESUME_PROMPT", "CLAUDE_CODE_RESUME_REASON",
	"CLAUDE_CODE_RELAUNCH_*", "CLAUDE_CODE_SDK_*", "CLAUDE_CODE_SHELL_HANDOVER_*", "CLAUDE_CODE_SPAWN*", "CLAUDE_CODE_TMUX_*",
	"CLAUDE_CODE_TOOL_USE_ID", "CLAUDE_CODE_TRIGGER_ID", "CLAUDE_CODE_WEBSOCKET_*", "CLAUDE_CODE_EXECPATH", "CLAUDE_CODE_ACTION",
	"CLAUDE_CODE_LAUNCHED_BY_*", "CLAUDE_CODE_MESSAGING_*", "CLAUDE_CODE_STARTER_*", "CLAUDE_CODE_SENDS_VIA_*", "CLAUDE_CODE_RUNNER_*",
	"CLAUDE_CODE_HOST_SESSION_ID", "CLAUDE_CODE_HOST_STARTED_AHEAD", "CLAUDE_CODE_HOST_SCHEDULED_RUN", "CLAUDE_CODE_HOST_WORKTREE*",
	"CLAUDE_CODE_LAZY_WORKTREE", "CLAUDE_CODE_SCRATCHPAD_DIR", "CLAUDE_CODE_PROJECT_DIR_NAME", "CLAUDE_CODE_MCP_SERVE_*",
	"CLAUDE_CODE_RESUME_HINT_COMMAND",
}

// Environment returns the variables of the user's environment that a child inherits: the
// default ones and those that pass names or matches. Those of identity must be named. An empty GIT_AUTHOR_NAME or the like is
// left out: git would refuse it, although the configuration may have a name.
func Environment(user, pass []string) []string {
	env := []string{"GIT_TERMINAL_PROMPT=0"}
	for _, kv := range user {
		name, value, _ := strings.Cut(kv, "=")
		if value == "" && (strings.HasPrefix(name, "GIT_AUTHOR_") || strings.HasPrefix(name, "GIT_COMMITTER_")) {
			continue
		}
		if matches(inherited, name) || slices.Contains(pass, name) || matches(pass, name) && !matches(identity, name) {
			env = append(env, kv)
		}
	}
	return env
}

// Names reports whether a list of names contains name. A trailing * in the list
// matches any suffix.
func Names(list []string, name string) bool { return matches(list, name) }

func matches(names []string, name string) bool {
	for _, n := range names {
		if prefix, open := strings.CutSuffix(n, "*"); n == name || open && strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
