package root

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/exit"
)

// flagCase describes how a flag that takes a text or a number treats a value that makes no sense.
type flagCase struct {
	args    []string // the arguments of the command
	absurd  []string // values that are refused
	code    int      // of the refusal
	meaning string   // of any value, if none is refused
}

// flagCases has a row for each flag of each command.
var flagCases = map[string]flagCase{
	"coven init --from":                   {absurd: []string{"vibe-kanban", "claude-sqad"}, code: exit.Usage},
	"coven review --comment":              {args: []string{"x", "text"}, absurd: []string{"a.go", "a.go:0", "a.go:3-2"}, code: exit.Usage},
	"coven review --suggest":              {args: []string{"x", "text"}, absurd: []string{"a.go", "a.go:0", "a.go:3-2"}, code: exit.Usage},
	"coven review --discard":              {args: []string{"x"}, absurd: []string{"c0"}, code: exit.Failed},
	"coven diff --since":                  {args: []string{"x"}, absurd: []string{"never"}, code: exit.Usage},
	"coven agents list --domain":          {meaning: "any domain; unknown ones have no agents"},
	"coven agents tree --tools":           {meaning: "any names; a name that no prefix matches has no agent"},
	"coven permissions check --agent":     {args: []string{"file.read"}, absurd: []string{"buidl"}, code: exit.Failed},
	"coven spawn --permission":            {args: []string{"build", "x"}, absurd: []string{"ReadFilesystem"}, code: exit.Failed},
	"coven spawn --model":                 {args: []string{"build", "x"}, absurd: []string{"sonet"}, code: exit.Failed},
	"coven spawn --task-id":               {args: []string{"build", "x"}, meaning: "a name for the record, of which coven makes a slug"},
	"coven spawn --provider":              {args: []string{"build", "x"}, absurd: []string{"clade"}, code: exit.Usage},
	"coven spawn --onto":                  {args: []string{"build", "x"}, absurd: []string{"mian"}, code: exit.Usage},
	"coven chat --agent":                  {args: []string{"-m", "x"}, absurd: []string{"buidl"}, code: exit.Usage},
	"coven chat --message":                {meaning: "what is said to the agent"},
	"coven chat --session":                {args: []string{"-m", "x"}, absurd: []string{"nope"}, code: exit.Failed},
	"coven chat --provider":               {args: []string{"-m", "x"}, absurd: []string{"clade"}, code: exit.Usage},
	"coven chat --model":                  {args: []string{"-m", "x"}, absurd: []string{"sonet"}, code: exit.Usage},
	"coven approvals deny --reason":       {args: []string{"1"}, meaning: "what the agent is told"},
	"coven approvals modify --input":      {args: []string{"1"}, absurd: []string{"", "x", "[1]", "null"}, code: exit.Usage},
	"coven cost --by":                     {absurd: []string{"", "hour"}, code: exit.Usage},
	"coven cost --since":                  {absurd: []string{"30", "-1d", "1y", "99999999d"}, code: exit.Usage},
	"coven metrics --agent":               {meaning: "any agent; unknown ones have no runs"},
	"coven metrics --since":               {absurd: []string{"30", "-1d", "1y", "99999999d"}, code: exit.Usage},
	"coven sessions new --agent":          {absurd: []string{"buidl"}, code: exit.Usage},
	"coven sessions new --provider":       {absurd: []string{"clade"}, code: exit.Usage},
	"coven sessions new --model":          {absurd: []string{"sonet"}, code: exit.Usage},
	"coven sessions new --title":          {absurd: []string{"", " "}, code: exit.Usage},
	"coven sessions fork --at":            {args: []string{"x"}, absurd: []string{"y"}, code: exit.Failed},
	"coven sessions export --format":      {args: []string{"--to", "x"}, absurd: []string{"csv"}, code: exit.Usage},
	"coven sessions export --status":      {args: []string{"--to", "x"}, absurd: []string{"done"}, code: exit.Usage},
	"coven sessions export --to":          {meaning: "the directory to copy the records into"},
	"coven sessions clean --older-than":   {absurd: []string{"30", "-1d", "1y", "99999999d"}, code: exit.Usage},
	"coven run --prompt":                  {meaning: "the text of a task"},
	"coven run --max":                     {absurd: []string{"-1", "many", "99999999999999999999"}, code: exit.Usage},
	"coven run --jobs":                    {absurd: []string{"0", "-1", "65", "x"}, code: exit.Usage},
	"coven run --grimoire":                {absurd: []string{"implemnt"}, code: exit.Usage},
	"coven run --provider":                {absurd: []string{"clade"}, code: exit.Usage},
	"coven run --model":                   {absurd: []string{"sonet", "sonet[1m]"}, code: exit.Usage},
	"coven run --onto":                    {absurd: []string{"mian"}, code: exit.Usage},
	"coven run --remote":                  {absurd: []string{"nope"}, code: exit.Usage},
	"coven status --remote":               {absurd: []string{"nope"}, code: exit.Person},
	"coven resume --remote":               {args: []string{"t"}, absurd: []string{"nope"}, code: exit.Usage},
	"coven resume --on":                   {absurd: []string{"nope"}, code: exit.Usage},
	"coven run --on":                      {absurd: []string{"nope"}, code: exit.Usage}, // without a remote
	"coven run --base":                    {absurd: []string{"nope"}, code: exit.Usage},
	"coven run --budget":                  {absurd: []string{"lots", "usd=x", "usd=-1"}, code: exit.Usage},
	"coven resume --jobs":                 {absurd: []string{"0", "-1", "65", "x"}, code: exit.Usage},
	"coven resume --budget":               {absurd: []string{"lots", "usd=+x"}, code: exit.Usage},
	"coven resume --provider":             {absurd: []string{"clade"}, code: exit.Usage},
	"coven resume --model":                {meaning: "a model that the provider of each session knows"},
	"coven retry --provider":              {args: []string{"t"}, absurd: []string{"clade"}, code: exit.Usage},
	"coven retry --model":                 {args: []string{"t"}, meaning: "a model that the provider of the session knows"},
	"coven retry --from":                  {args: []string{"t"}, absurd: []string{"nowhere"}, code: exit.Failed},
	"coven approve --message":             {args: []string{"t"}, meaning: "the message of a commit"},
	"coven prompts render --input":        {args: []string{"implement"}, absurd: []string{"nothing"}, code: exit.Usage},
	"coven revise --message":              {args: []string{"t"}, meaning: "what to change"},
	"coven reject --reason":               {args: []string{"t"}, meaning: "a text for the next attempt"},
	"coven attach --message":              {args: []string{"t"}, meaning: "a text for the agent"},
	"coven snooze --for":                  {args: []string{"t"}, absurd: []string{"0s", "-1h", "x", "1y"}, code: exit.Usage},
	"coven revert --path":                 {args: []string{"t"}, absurd: []string{"../x", "/etc/passwd", "."}, code: exit.Usage},
	"coven rescue restore --to":           {args: []string{"t"}, absurd: []string{"nothing is stored"}, code: exit.Failed},
	"coven events --since":                {absurd: []string{"-1", "x"}, code: exit.Usage},
	"coven schema --output":               {args: []string{"config"}, absurd: []string{"no/such/directory"}, code: exit.Failed},
	"coven web --listen":                  {absurd: []string{"8080", "192.0.2.1:0", "127.0.0.1:99999"}, code: exit.Usage},
	"coven web --cert":                    {absurd: []string{"nothing"}, code: exit.Usage},
	"coven web --key":                     {absurd: []string{"nothing"}, code: exit.Usage},
	"coven task edit --title":             {args: []string{"t-1"}, absurd: []string{"", " "}, code: exit.Usage},
	"coven task edit --description":       {args: []string{"t-1"}, meaning: "any text"},
	"coven task edit --accept":            {args: []string{"t-1"}, meaning: "any text"},
	"coven task edit --design":            {args: []string{"t-1"}, meaning: "any text"},
	"coven task edit --priority":          {args: []string{"t-1"}, absurd: []string{"high", "1.5"}, code: exit.Usage},
	"coven task edit --label":             {args: []string{"t-1"}, meaning: "any label"},
	"coven task add --description":        {args: []string{"t"}, meaning: "the description of the task; empty: none"},
	"coven task add --accept":             {args: []string{"t"}, meaning: "an acceptance criterion"},
	"coven task add --priority":           {args: []string{"t"}, absurd: []string{"-1", "5", "high"}, code: exit.Usage},
	"coven task add --label":              {args: []string{"t"}, meaning: "a label"},
	"coven task add --after":              {args: []string{"t"}, absurd: []string{"nothing"}, code: exit.Failed},
	"coven task add --type":               {args: []string{"t"}, absurd: []string{"story", "bugg"}, code: exit.Usage},
	"coven task close --reason":           {args: []string{"t"}, meaning: "why it is closed"},
	"coven grimoires graph --format":      {args: []string{"implement"}, absurd: []string{"svg"}, code: exit.Usage},
	"coven grimoires backtest --agent":    {args: []string{"implement", "--budget", "usd=1"}, absurd: []string{"nothing"}, code: exit.Usage},
	"coven grimoires backtest --budget":   {args: []string{"implement"}, absurd: []string{"5", "usd=-1", "usd=x"}, code: exit.Usage},
	"coven grimoires backtest --jobs":     {args: []string{"implement"}, absurd: []string{"-1", "65", "x"}, code: exit.Usage},
	"coven grimoires backtest --model":    {args: []string{"implement"}, meaning: "a model of the provider; checked by it"},
	"coven grimoires backtest --newest":   {args: []string{"implement"}, absurd: []string{"0", "-1", "x"}, code: exit.Usage},
	"coven grimoires backtest --on":       {args: []string{"implement", "--budget", "usd=1"}, absurd: []string{"nothing"}, code: exit.Failed},
	"coven grimoires backtest --prompt":   {args: []string{"implement", "--budget", "usd=1"}, absurd: []string{"x", "=x", "x=", "implement=nothing"}, code: exit.Usage},
	"coven grimoires backtest --provider": {args: []string{"implement", "--budget", "usd=1"}, absurd: []string{"nothing"}, code: exit.Usage},
	"coven grimoires backtest --reviewer": {args: []string{"implement", "--budget", "usd=1"}, absurd: []string{"nothing"}, code: exit.Usage},
	"coven grimoires backtest --step":     {args: []string{"implement", "--budget", "usd=1"}, absurd: []string{"nothing", "land"}, code: exit.Usage},
	"coven prompts render --task":         {args: []string{"implement"}, absurd: []string{"nothing"}, code: exit.Failed},
	"coven plugins new --lang":            {args: []string{"reviewer", "x"}, absurd: []string{"cobol"}, code: exit.Usage},
	"coven plugins test --kind":           {args: []string{"./x"}, absurd: []string{"reviwer"}, code: exit.Usage},
	"coven plugins test --with":           {args: []string{"./x"}, absurd: []string{"words"}, code: exit.Usage},
	"coven plugins test --transcript":     {args: []string{"./x"}, absurd: []string{"nothing"}, code: exit.Usage},
	"coven permissions review --write":    {absurd: []string{"0", "x", "99"}, code: exit.Usage},
	"coven tools list --agent":            {absurd: []string{"buidl"}, code: exit.Failed},
	"coven tools export --agent":          {absurd: []string{"buidl"}, code: exit.Failed},
	"coven tools export --format":         {absurd: []string{"gemini"}, code: exit.Usage},
	"coven ground files --source":         {absurd: []string{"code"}, code: exit.Usage},
	"coven ground files --where":          {absurd: []string{"status", "=x"}, code: exit.Usage},
	"coven ground search --source":        {args: []string{"x"}, absurd: []string{"code"}, code: exit.Usage},
	"coven ground search --where":         {args: []string{"x"}, absurd: []string{"status", "=x"}, code: exit.Usage},
	"coven ground search --limit":         {args: []string{"x"}, absurd: []string{"0", "-1", "x"}, code: exit.Usage},
}

// Every flag refuses an empty value, and a senseless one unless any value is meaningful. A new flag fails
// until it has a row.
func TestFlagValues(t *testing.T) {
	repository(t)
	seen := map[string]bool{}
	eachCommand(NewRoot(NewApp("test")), func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Value.Type() == "bool" {
				return
			}
			name := cmd.CommandPath() + " --" + f.Name
			row, ok := flagCases[name]
			if !ok || len(row.absurd) == 0 && row.meaning == "" {
				t.Errorf("%s has no row", name)
				return
			}
			seen[name] = true
			given := append(strings.Fields(cmd.CommandPath())[1:], row.args...)
			for _, empty := range []string{"", " \t"} {
				if !cli.MayBeEmpty(f) {
					refuses(t, exit.Usage, append(slices.Clone(given), "--"+f.Name+"="+empty)...)
				}
			}
			for _, value := range row.absurd {
				refuses(t, row.code, append(slices.Clone(given), "--"+f.Name+"="+value)...)
			}
		})
	})
	for name := range flagCases {
		if !seen[name] {
			t.Errorf("there is no %s", name)
		}
	}
	untouched(t)
}

// Every command refuses empty, missing and extra arguments.
func TestArguments(t *testing.T) {
	repository(t)
	eachCommand(NewRoot(NewApp("test")), func(cmd *cobra.Command) {
		path := strings.Fields(cmd.CommandPath())[1:]
		required, all := parameters(cmd)
		variadic := strings.Contains(cmd.Use, "...")
		many := slices.Repeat([]string{"x"}, len(all))
		switch {
		case cmd.HasSubCommands():
			refuses(t, exit.Usage, append(path, "frobnicate")...)
			refuses(t, exit.Usage, append(path, "frobnicate", "--help")...)
			return
		case len(all) > 0:
			refuses(t, exit.Usage, append(path, "")...)
			refuses(t, exit.Usage, append(path, " ")...)
		}
		if len(required) > 0 {
			refuses(t, exit.Usage, path...)
		}
		if !variadic {
			refuses(t, exit.Usage, append(append(path, many...), "x")...)
		}
		refuses(t, exit.Usage, append(path, "--nope")...)
	})
	untouched(t)
}

// The messages about wrong command lines.
func TestUsageErrors(t *testing.T) {
	repository(t)
	for line, want := range map[string]string{
		"stat":                                `no command "coven stat" (did you mean "status"?)`,
		"aprove":                              `no command "coven aprove" (did you mean "approve"?)`,
		"aprove --help":                       `no command "coven aprove" (did you mean "approve"?)`,
		"re":                                  `(did you mean "reject" or "rescue" or "resume" or "retry" or "revert" or "review" or "revise"?)`,
		"task lst":                            `no command "coven task lst" (did you mean "list"?)`,
		"task lst --help":                     `no command "coven task lst" (did you mean "list"?)`,
		"worktree rm":                         `no command "coven worktree rm"`,
		"approve":                             "missing TASK: coven approve TASK..., or coven approve --all\n",
		"retry":                               "missing TASK: coven retry TASK\n",
		"diff a b":                            `unexpected argument "b": coven diff takes one TASK` + "\n",
		"version x":                           `unexpected argument "x": coven version takes none` + "\n",
		"task add Fix it":                     `unexpected argument "it": coven task add takes one TITLE; put quotes around it` + "\n",
		"completion powershell":               `"powershell" is not one of bash, zsh, fish`,
		"run -x":                              "unknown flag -x\n",
		"run --watsh":                         "unknown flag --watsh (did you mean --watch?)\n",
		"run --aut":                           "unknown flag --aut (did you mean --auto-approve?)\n",
		"run -p":                              "there is no terminal for an editor",
		"run -j many":                         `--jobs: "many" is not a whole number` + "\n",
		"run -n 99999999999999999999":         "--max: 99999999999999999999 is too large\n",
		"run -j 0":                            "-j 0 is not between 1 and 64\n  next: coven run -j 3\n",
		"run --watch=maybe":                   `--watch: "maybe" is not true or false` + "\n",
		"run -p a -p b":                       "--prompt is given twice\n",
		"run --budget usd=1 --budget turns=3": "--budget is given twice\n",
		"run --onto mian":                     `target "mian": no such branch (did you mean "main"?)`,
		"run --model sonet":                   `claude has no model "sonet" (did you mean "sonnet"?)`,
		"task add x --type bugg":              `type "bugg" is not one of task, bug, feature, chore, epic (did you mean "bug"?)`,
		"-x rnu":                              "unknown flag -x\n",
		"--nope run":                          "unknown flag --nope\n",
		"-p x":                                "unknown flag -p\n",
		"task --json lst":                     "unknown flag --json\n",
		"--help rnu":                          `no command "coven rnu" (did you mean "run"?)` + "\n",
		"-h task lst":                         `no command "coven task lst" (did you mean "list"?)` + "\n",
		"-- run":                              "-- must not precede the command run\n",
		"task -- list":                        "-- must not precede the command list\n",
		"help con":                            `no command or topic "con" (did you mean "config"?)` + "\n",
		"help provid":                         `no command or topic "provid" (did you mean "provider-plugins" or "providers"?)` + "\n",
		"help ../guides/day":                  `no command or topic "../guides/day"` + "\n",
		"help config nope":                    `no command "coven config nope"` + "\n  next: coven config --help\n",
		"help run extra":                      `unexpected argument "extra" after coven run` + "\n  next: coven run --help\n",
		"prompts render implement":            "missing --task: coven prompts render NAME --task TASK\n",
	} {
		if got := refuses(t, exit.Usage, strings.Fields(line)...); !strings.Contains(got, want) {
			t.Errorf("coven %s: %q, want %q", line, got, want)
		}
	}
	for _, args := range [][]string{{""}, {" "}, {"task", ""}, {"help", ""}, {"help", "task", " "}, {"", "--help"}} {
		if got := refuses(t, exit.Usage, args...); !strings.Contains(got, "is empty (is a variable unset?)") {
			t.Errorf("coven %q: %q", args, got)
		}
	}
	untouched(t)
}

// Unusual values that are valid.
func TestUsageAccepts(t *testing.T) {
	repository(t)
	for _, line := range []string{
		"--version", "version", "--help", "task --help", "--help run", "-h task list", "task -h list", "help task", "help -- day", "help config --help", "__complete task sh", "run --dry-run -n 0 -p x",
		"run --dry-run -p x --model claude-sonnet-4-5-20250929", "run --dry-run -p x --model opus[1m]", "run --dry-run -p x --model kimi-k2",
		"run --dry-run -p x --provider codex --model sonet", "run --dry-run -p x --model haiku --model opus", "task add x --description=",
	} {
		if code, out := play(t, strings.Fields(line)...); code != exit.OK {
			t.Errorf("coven %s: %d\n%s", line, code, out)
		}
	}
}

// refuses runs a command that fails with the exit code want and prints a reason. It returns the output.
func refuses(t *testing.T, want int, args ...string) string {
	t.Helper()
	code, out := play(t, args...)
	if code != want || !strings.HasPrefix(out, "coven: ") {
		t.Errorf("coven %q: %d, want %d\n%s", args, code, want, out)
	}
	for _, internal := range []string{"strconv", "pflag", "arg(s)", "shorthand", "exit status"} {
		if strings.Contains(out, internal) {
			t.Errorf("coven %q prints %q:\n%s", args, internal, out)
		}
	}
	return out
}

// play runs a command line in this process.
func play(t *testing.T, args ...string) (int, string) {
	t.Helper()
	var out bytes.Buffer
	a := NewApp("test")
	a.In, a.Out, a.Err, a.Interactive = strings.NewReader(""), &out, &out, false
	return Run(a, args), out.String()
}

func eachCommand(cmd *cobra.Command, do func(*cobra.Command)) {
	if cmd.Hidden {
		return
	}
	do(cmd)
	for _, sub := range cmd.Commands() {
		eachCommand(sub, do)
	}
}

// repository enters a new repository with one commit and a sealed home.
func repository(t *testing.T) {
	t.Helper()
	home, dir := t.TempDir(), t.TempDir()
	for name, value := range map[string]string{
		"HOME": home, "XDG_CONFIG_HOME": "", "XDG_CACHE_HOME": "", "GIT_CONFIG_NOSYSTEM": "1", "BEADS_DIR": "",
		"GIT_AUTHOR_NAME": "t", "GIT_AUTHOR_EMAIL": "t@example.org", "GIT_COMMITTER_NAME": "t", "GIT_COMMITTER_EMAIL": "t@example.org",
	} {
		t.Setenv(name, value)
	}
	t.Chdir(dir)
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"commit", "-q", "--allow-empty", "-m", "first"}} {
		if out, err := exec.CommandContext(t.Context(), "git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
}

// untouched fails if a refused command has created files.
func untouched(t *testing.T) {
	t.Helper()
	for _, name := range []string{".coven/sessions", ".coven/worktrees", ".beads/issues.jsonl"} {
		if _, err := os.Stat(filepath.FromSlash(name)); err == nil {
			t.Errorf("%s was made", name)
		}
	}
}
