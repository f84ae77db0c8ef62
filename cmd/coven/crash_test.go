package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestCrash plays each story below testdata/crash once undisturbed, which lists the crash points that it
// reaches, and then once for each of them with a kill at that point. The story itself checks the results.
// CRASH=all kills at every hit of every point; without it a bounded grid is played, and a smaller one with
// CRASH=few.
func TestCrash(t *testing.T) {
	longRun(t)
	reached := map[string]bool{}
	for _, g := range []grid{
		{story: "landing", kills: 24},
		{story: "resolve", kills: 20},
		{story: "batch", kills: 24, again: []string{"batch.checked:1", "land.intent:2"}, kills2: 3},
		{story: "alone", kills: 12, again: []string{"check.repeated:1", "check.ran:2"}, kills2: 2},
		{story: "bd", kills: 11},
		{story: "quality", kills: 16, again: []string{"agent.ended:2"}, kills2: 2},
		{story: "revert", kills: 16, again: []string{"restore.stored:1"}, kills2: 8},
		{story: "pool", kills: 16},
		{story: "spawn", kills: 20, again: []string{"spawn.started:1", "spawn.ended:2"}, kills2: 4},
		{story: "reflection", kills: 24, again: []string{"reflection.attempted:2", "reflection.restore:1"}, kills2: 3},
		{story: "asked", kills: 12, again: []string{"chat.answered:1"}, kills2: 3},
		{story: "loop", kills: 20, again: []string{"chat.answered:2", "chat.called:2"}, kills2: 5},
		{story: "acp", kills: 16, again: []string{"agent.ended:1", "event.written.gate.decided:2"}, kills2: 3},
		{story: "compact", kills: 15, again: []string{"chat.compacted:1"}, kills2: 3},
		{story: "chat", kills: 16, again: []string{"agent.ended:1", "session.close:1"}, kills2: 6},
		{story: "fork", kills: 12, again: []string{"session.copied:1", "fork.restored:1"}, kills2: 2},
		{story: "revise", kills: 16, again: []string{"agent.ended:1"}, kills2: 3},
		{story: "pullrequest", kills: 16, again: []string{"pull.pushed:1", "pull.opened:1", "pull.acted:1"}, kills2: 2},
		{story: "handover", kills: 24, again: []string{"live.pushed:1", "live.pushed:2", "live.end.before:1"}, kills2: 8},
		{story: "replay", kills: 16, again: []string{"add.filled:1"}, kills2: 2},
		{story: "pullanswer", kills: 20, again: []string{"pull.acted:1"}, kills2: 2},
		{story: "nested", kills: 20, again: []string{"script.ended:1", "agent.ended:2", "land.intent:1"}, kills2: 3},
	} {
		t.Run(g.story, func(t *testing.T) { g.play(t, reached) })
	}
	if all := !strings.Contains(flag.Lookup("test.run").Value.String(), "/"); all && !t.Failed() {
		unreached(t, reached)
	}
}

// unplayed returns the points that no story reaches: other tests kill there.
func unplayed() []string {
	return []string{
		"clear.", "recreate.", "isolate.", "collect.", "watch.", "rescue.", "add.emptied", "add.populated", // package worktree
		"session.index.", "gc.", // TestSessionIndexSurvivesKills, script/gc
		"checkout.undo.",    // package checkout
		"login.",            // package forwarder
		"limit.",            // script/notbegun
		"branch.",           // script/branches
		"session.restored.", // script/recordsgone
		"mail.", "mirror.",  // script/handoverkilled
		"inbox.", // a missing request was not made, and a duplicate one has no effect
	}
}

// unreached compares the points of the stories with those in the code.
func unreached(t *testing.T, reached map[string]bool) {
	t.Helper()
	marks := regexp.MustCompile(`failpoint\.Point\("([a-z.]+)"\)`)
	for _, dir := range []string{"internal/*", "internal/*/*", "runner", "worktree", "worktree/*", "worktree/*/*"} {
		files, err := filepath.Glob(filepath.Join("..", "..", dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, mark := range marks.FindAllStringSubmatch(string(text), -1) {
				known := slices.ContainsFunc(unplayed(), func(p string) bool { return strings.HasPrefix(mark[1], p) })
				if !strings.HasSuffix(file, "_test.go") && !reached[mark[1]] && !known {
					t.Errorf("no story reaches %s", mark[1])
				}
			}
		}
	}
}

// grid is the played part of a story's matrix.
type grid struct {
	story  string
	kills  int
	again  []string // kills after which the story is killed once more
	kills2 int      // number of second kills, for each of them
	lacks  string   // the missing feature of the kernel; see machineWithout
}

func (g grid) play(t *testing.T, reached map[string]bool) {
	m := &matrix{story: g.story, lacks: g.lacks}
	t.Cleanup(func() { m.judge(t) })
	points := m.undisturbed(t, "")
	for _, p := range points {
		reached[p] = true
	}
	if os.Getenv("CRASH") == "few" {
		g.kills, g.kills2 = g.kills/3, (g.kills2+1)/2
	}
	kills := some(points, g.kills)
	if everything() {
		kills = every(points)
	}
	t.Logf("%s: %d hits of points, %d kills", g.story, len(points), len(kills))
	for _, kill := range kills {
		m.kill(t, kill, "")
	}
	for _, first := range g.again {
		points := m.undisturbed(t, first)
		for _, p := range points {
			reached[p] = true
		}
		n := g.kills2
		if everything() {
			n *= 10
		}
		for _, second := range some(points, n) {
			m.kill(t, first, second)
		}
	}
}

// matrix is a story that is killed at many points.
type matrix struct {
	story   string
	lacks   string
	outcome string // of the undisturbed play

	mu     sync.Mutex
	killed int
	missed int // a point was reached less often than before
}

// undisturbed plays the story to its end and returns the points that its first doomed command reached or,
// if first is a kill, its second one.
func (m *matrix) undisturbed(t *testing.T, first string) []string {
	t.Helper()
	trace := filepath.Join(t.TempDir(), "trace")
	env := map[string]string{"POINT": "trace=" + trace}
	if first != "" {
		env = map[string]string{"POINT": first, "AGAIN": "trace=" + trace}
	}
	if !t.Run("undisturbed after "+first, func(t *testing.T) { m.run(t, env) }) {
		t.FailNow()
	}
	data, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(data))
}

// kill plays the story with one or two kills.
func (m *matrix) kill(t *testing.T, first, second string) {
	t.Helper()
	name := first
	if second != "" {
		name += " then " + second
	}
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		m.run(t, map[string]string{"POINT": first, "AGAIN": second})
	})
}

// count counts a kill that hit or missed.
func (m *matrix) count(died bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if died {
		m.killed++
	} else {
		m.missed++
	}
}

// judge fails if too many kills missed. With tasks in parallel, some do.
func (m *matrix) judge(t *testing.T) {
	t.Helper()
	if t.Logf("%s: %d killed, %d not reached", m.story, m.killed, m.missed); m.missed > m.killed/5 {
		t.Errorf("%s: %d of %d kills were not reached", m.story, m.missed, m.killed+m.missed)
	}
}

func (m *matrix) run(t *testing.T, vars map[string]string) {
	t.Helper()
	testscript.Run(t, testscript.Params{
		Files: []string{filepath.Join("testdata", "crash", m.story+".txtar")},
		Cmds:  scriptCommands(), RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			for key, value := range vars {
				env.Setenv(key, value)
			}
			env.Setenv("LEDGER", filepath.Join(env.WorkDir, "ledger"))
			env.Values[matrixKey{}] = m
			if err := seal(env); err != nil || m.lacks == "" {
				return err
			}
			return machineWithout(m.lacks, env)
		},
	})
}

// everything reports whether to play every kill.
func everything() bool { return os.Getenv("CRASH") == "all" }

// some selects up to most kills for points in the order in which they were reached: for each point the
// first, the last or another hit, in turn, and where bytes may be lost, each of the ways in turn.
func some(points []string, most int) []string {
	names, count := hits(points)
	var kills []string
	for _, i := range spread(len(names), most) {
		name := names[i-1]
		n := len(kills)
		hit := []int{1, count[name], (1 + count[name]) / 2}[n%3]
		ways := ways(name)
		kills = append(kills, fmt.Sprintf("%s:%d%s", name, hit, ways[n/2%len(ways)]))
	}
	return kills
}

// hits returns the names of points in the order in which they were first reached, and the number of hits of
// each.
func hits(points []string) (names []string, count map[string]int) {
	count = map[string]int{}
	for _, p := range points {
		if count[p]++; count[p] == 1 {
			names = append(names, p)
		}
	}
	return names, count
}

// ways returns the ways to die at a point.
func ways(point string) []string {
	if strings.HasPrefix(point, "event.written.") {
		return []string{"", ":lost", ":torn"}
	}
	return []string{""}
}

// every returns all kills: each way at each hit of each point.
func every(points []string) []string {
	names, count := hits(points)
	var kills []string
	for _, name := range names {
		for hit := range count[name] {
			for _, way := range ways(name) {
				kills = append(kills, fmt.Sprintf("%s:%d%s", name, hit+1, way))
			}
		}
	}
	return kills
}

// spread returns up to most numbers from 1 to n, evenly spaced, including both ends.
func spread(n, most int) []int {
	most = min(n, most)
	if most == 1 {
		return []int{n}
	}
	var all []int
	for i := range most {
		all = append(all, 1+i*(n-1)/(most-1))
	}
	return all
}

func TestKills(t *testing.T) {
	points := strings.Fields("a event.written.x b b a event.written.x b event.written.x b b")
	for most, want := range map[int]string{
		1: "b:1",
		2: "a:1 b:5",
		9: "a:1 event.written.x:3 b:3",
	} {
		if got := strings.Join(some(points, most), " "); got != want {
			t.Errorf("%d: %s, want %s", most, got, want)
		}
	}
	if got := len(every(points)); got != 2+3*3+5 {
		t.Errorf("%d of all kills", got)
	}
	if got := fmt.Sprint(spread(10, 4)); got != "[1 4 7 10]" {
		t.Errorf("spread %s", got)
	}
}
