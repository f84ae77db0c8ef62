package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/coven-run/coven/internal/fake/fakeforge"
)

// forgeKey is the key of the fake host of a script.
type forgeKey struct{}

// githubCommands are the commands of fakegithub after start, by name, with their arguments for people.
var githubCommands = map[string]struct {
	usage    string
	min, max int
	run      func(ts *testscript.TestScript, s *fakeforge.Server, args []string) error
}{
	"check": {"NUMBER NAME pending|passed|failed [LOGFILE]", 3, 4, func(ts *testscript.TestScript, s *fakeforge.Server, args []string) error {
		log := ""
		if len(args) == 4 {
			log = ts.ReadFile(args[3])
		}
		return s.Check(atoi(ts, args[0]), args[1], args[2], log)
	}},
	"open": {"HEAD BASE TITLE", 3, 3, func(_ *testscript.TestScript, s *fakeforge.Server, args []string) error {
		_, err := s.OpenRequest(args[0], args[1], args[2])
		return err
	}},
	"require": {"NAME...", 0, 9, func(_ *testscript.TestScript, s *fakeforge.Server, args []string) error {
		s.Require(args...)
		return nil
	}},
	"reviews": {"N", 1, 1, func(ts *testscript.TestScript, s *fakeforge.Server, args []string) error {
		s.RequireReviews(atoi(ts, args[0]))
		return nil
	}},
	"queue": {"on|off", 1, 1, func(_ *testscript.TestScript, s *fakeforge.Server, args []string) error {
		s.Queue(args[0] == "on")
		return nil
	}},
	"comment": {"NUMBER AUTHOR[:ASSOCIATION] TEXT [PATH:LINE]", 3, 4, func(ts *testscript.TestScript, s *fakeforge.Server, args []string) error {
		return s.Comment(atoi(ts, args[0]), args[1], strings.Join(args[3:], ""), args[2])
	}},
	"answer": {"NUMBER AUTHOR[:ASSOCIATION] TEXT", 3, 3, func(ts *testscript.TestScript, s *fakeforge.Server, args []string) error {
		return s.Answer(atoi(ts, args[0]), args[1], strings.ReplaceAll(args[2], `\n`, "\n"))
	}},
	"review": {"NUMBER AUTHOR APPROVED|CHANGES_REQUESTED|COMMENTED [TEXT]", 3, 4, func(ts *testscript.TestScript, s *fakeforge.Server, args []string) error {
		return s.Review(atoi(ts, args[0]), args[1], args[2], strings.Join(args[3:], ""))
	}},
	"resolve": {"NUMBER", 1, 1, func(ts *testscript.TestScript, s *fakeforge.Server, args []string) error {
		return s.Resolve(atoi(ts, args[0]))
	}},
	"merge": {"NUMBER [merge|squash|rebase]", 1, 2, func(ts *testscript.TestScript, s *fakeforge.Server, args []string) error {
		return s.Merge(atoi(ts, args[0]), "ann", strings.Join(args[1:], ""))
	}},
	"reopen": {"NUMBER", 1, 1, func(ts *testscript.TestScript, s *fakeforge.Server, args []string) error {
		return s.Reopen(atoi(ts, args[0]))
	}},
	"dequeue": {"NUMBER", 1, 1, func(ts *testscript.TestScript, s *fakeforge.Server, args []string) error {
		return s.Dequeue(atoi(ts, args[0]))
	}},
	"lock": {"NUMBER", 1, 1, func(ts *testscript.TestScript, s *fakeforge.Server, args []string) error {
		return s.Lock(atoi(ts, args[0]))
	}},
	"close": {"NUMBER", 1, 1, func(ts *testscript.TestScript, s *fakeforge.Server, args []string) error {
		return s.CloseRequest(atoi(ts, args[0]), "ann")
	}},
	"ready": {"NUMBER", 1, 1, func(ts *testscript.TestScript, s *fakeforge.Server, args []string) error {
		return s.Ready(atoi(ts, args[0]))
	}},
	"delete": {"NUMBER", 1, 1, func(ts *testscript.TestScript, s *fakeforge.Server, args []string) error {
		return s.Delete(atoi(ts, args[0]))
	}},
	"delete-branch": {"NUMBER", 1, 1, func(ts *testscript.TestScript, s *fakeforge.Server, args []string) error {
		return s.DeleteBranch(atoi(ts, args[0]))
	}},
	"push": {"NUMBER FILE TEXT [force]", 3, 4, func(ts *testscript.TestScript, s *fakeforge.Server, args []string) error {
		return s.Push(atoi(ts, args[0]), args[1], args[2]+"\n", len(args) == 4)
	}},
	"push-base": {"BRANCH FILE TEXT", 3, 3, func(_ *testscript.TestScript, s *fakeforge.Server, args []string) error {
		return s.PushBase(args[0], args[1], args[2]+"\n")
	}},
	"rename": {"OWNER/NAME", 1, 1, func(_ *testscript.TestScript, s *fakeforge.Server, args []string) error {
		s.Rename(args[0])
		return nil
	}},
	"limit": {"POINTS DURATION", 2, 2, func(ts *testscript.TestScript, s *fakeforge.Server, args []string) error {
		d, err := time.ParseDuration(args[1])
		s.Limit(atoi(ts, args[0]), d)
		return err
	}},
	"fail": {"late|wrong|empty|error|die|secondary|denied|login N", 2, 2, func(ts *testscript.TestScript, s *fakeforge.Server, args []string) error {
		s.Fail(args[0], atoi(ts, args[1]))
		return nil
	}},
	"count": {"FILE", 1, 1, func(ts *testscript.TestScript, s *fakeforge.Server, args []string) error {
		requests, points := s.Counts()
		text := fmt.Sprintf("points %d\n", points)
		for _, name := range slices.Sorted(maps.Keys(requests)) {
			text += fmt.Sprintf("%s %d\n", name, requests[name])
		}
		return os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o644)
	}},
	"pulls": {"FILE", 1, 1, func(ts *testscript.TestScript, s *fakeforge.Server, args []string) error {
		return os.WriteFile(ts.MkAbs(args[0]), pullsOf(s), 0o644)
	}},
	"await": {"REGEXP", 1, 1, func(_ *testscript.TestScript, s *fakeforge.Server, args []string) error {
		re, err := regexp.Compile("(?m)" + args[0])
		if err != nil {
			return err
		}
		for deadline := time.Now().Add(patience); time.Now().Before(deadline); pause() {
			if re.Match(pullsOf(s)) {
				return nil
			}
		}
		return fmt.Errorf("no pull request ever matched %s:\n%s", args[0], pullsOf(s))
	}},
}

// pullsOf returns the pull requests, each as a line of JSON.
func pullsOf(s *fakeforge.Server) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for _, p := range s.Pulls() {
		_ = enc.Encode(p) // strings and numbers can always be encoded
	}
	return b.Bytes()
}

func atoi(ts *testscript.TestScript, text string) int {
	n, err := strconv.Atoi(text)
	ts.Check(err)
	return n
}

// cmdFakeGitHub implements fakegithub COMMAND ...: it controls a fake host. start REPO starts it, makes REPO.git its repository acme/app, and
// makes it the remote origin of REPO.
func cmdFakeGitHub(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) == 2 && args[0] == "start" && !neg {
		startGitHub(ts, args[1])
		return
	}
	if len(args) == 0 {
		ts.Fatalf("usage: fakegithub COMMAND ...")
	}
	c, known := githubCommands[args[0]]
	server, started := ts.Value(forgeKey{}).(*forge)
	switch {
	case !known:
		ts.Fatalf("usage: fakegithub start REPO, or one of %s", strings.Join(slices.Sorted(maps.Keys(githubCommands)), ", "))
	case !started || server.Server == nil:
		ts.Fatalf("no fakegithub was started")
	}
	n := len(args) - 1
	want(ts, neg, args[1:], min(max(n, c.min), c.max), "fakegithub "+args[0]+" "+c.usage)
	ts.Check(c.run(ts, server.Server, args[1:]))
}

// forge holds the fake host of a script.
type forge struct{ *fakeforge.Server }

func (f *forge) close() {
	if f.Server != nil {
		_ = f.Close()
	}
}

func startGitHub(ts *testscript.TestScript, repo string) {
	bare := ts.MkAbs(repo) + ".git"
	git(ts, ".", "clone", "-q", "--bare", ts.MkAbs(repo), bare)
	server, err := fakeforge.New(bare, "acme/app")
	ts.Check(err)
	held := ts.Value(forgeKey{}).(*forge)
	held.close()
	held.Server = server
	origin := "http://" + server.Host + "/acme/app.git"
	git(ts, repo, "remote", "add", "origin", origin)
	git(ts, repo, "config", "url."+bare+".insteadOf", origin)
	git(ts, repo, "fetch", "-q", "origin")
	ts.Setenv("FORGE_HOST", server.Host)
	ts.Setenv("FORGE_API", server.API)
	ts.Setenv("GH_ENTERPRISE_TOKEN", "ghp_tokenofastory1234567890")
}
