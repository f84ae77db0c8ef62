package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// The crash matrix. Each story below testdata/crash is played once undisturbed,
// which lists the crash points that it reaches, and then once for each of them,
// killed there: it says itself what has to be true then. CRASH=all kills at every
// hit of every point; otherwise at some hits of each, as many as grid says.
func TestCrash(t *testing.T) {
	if raced {
		t.Skip("the crash matrix is many processes, not many goroutines: make crash plays it without -race")
	}
	for _, g := range []grid{
		{story: "landing", hits: 1},
		{story: "resolve", hits: 1},
		{story: "nested", hits: 2, again: []string{"script.ended:3", "agent.ended:1", "restore.switched:1", "land.intent:1"}},
	} {
		t.Run(g.story, g.play)
	}
}

// grid is the part of a story's matrix that is played.
type grid struct {
	story string
	hits  int      // of each point, the first and the last among them
	again []string // kills after which the story is killed once more
}

func (g grid) play(t *testing.T) {
	m := &matrix{story: g.story}
	points := m.undisturbed(t, "")
	for _, kill := range pick(points, g.hits) {
		m.killed(t, kill, "")
	}
	for _, first := range g.again {
		for _, second := range pick(m.undisturbed(t, first), 1) {
			m.killed(t, first, second)
		}
	}
}

// matrix is one story that is killed.
type matrix struct {
	story   string
	outcome string // of the undisturbed play
}

// undisturbed plays the story to its end and returns the points that it
// reached: those of its first doomed command, or after the kill first, of the second.
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

// killed plays the story with a kill, or with two.
func (m *matrix) killed(t *testing.T, first, second string) {
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
			return seal(env)
		},
	})
}

// pick returns kills for a list of points as they were reached: for each point
// its first hit, its last, and others evenly between them, most in all; with
// CRASH=all every hit. Where bytes may be lost the kill is made in three ways.
func pick(points []string, most int) []string {
	count := map[string]int{}
	var names, kills []string
	for _, p := range points {
		if count[p]++; count[p] == 1 {
			names = append(names, p)
		}
	}
	for _, name := range names {
		n := count[name]
		if os.Getenv("CRASH") == "all" {
			most = n
		}
		for _, hit := range spread(n, most) {
			kill := fmt.Sprintf("%s:%d", name, hit)
			kills = append(kills, kill)
			if strings.HasPrefix(name, "event.written.") {
				kills = append(kills, kill+":lost", kill+":torn")
			}
		}
	}
	return kills
}

// spread returns most numbers from 1 to n, evenly, both ends among them.
func spread(n, most int) []int {
	if most == 1 || n == 1 {
		return []int{n}
	}
	most = min(n, most)
	var all []int
	for i := range most {
		all = append(all, 1+i*(n-1)/(most-1))
	}
	return slices.Compact(all)
}
