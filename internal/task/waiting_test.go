package task

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestWaitingIn(t *testing.T) {
	on := func(ids ...string) (list []Dependency) {
		for _, id := range ids {
			list = append(list, Dependency{ID: id, Type: "blocks"})
		}
		return list
	}
	all := []Task{
		{ID: "ready", Status: StatusOpen, Type: "task"},
		{ID: "done", Status: StatusClosed, Type: "task", DependsOn: on("ready")},
		{ID: "free", Status: StatusOpen, Type: "task", DependsOn: on("done")},
		{ID: "two", Status: StatusOpen, Type: "task", DependsOn: on("ready", "free", "done")},
		{ID: "taken", Status: StatusOpen, Assignee: "ann", Type: "task", DependsOn: on("ready")},
		{ID: "epic", Status: StatusOpen, Type: "epic", DependsOn: on("ready")},
		{ID: "child", Status: StatusOpen, Type: "task", Parent: "epic"},
	}
	var got []string
	for _, w := range WaitingIn(all, time.Now()) {
		got = append(got, fmt.Sprint(w.ID, w.For))
	}
	if text := strings.Join(got, " "); text != "two[ready free] child[ready]" {
		t.Errorf("got %s", text)
	}
	if blockers, dependents := Links(all, "two", time.Now()); fmt.Sprint(blockers, dependents) != "[ready free] []" {
		t.Errorf("two: %v, %v", blockers, dependents)
	}
	if blockers, dependents := Links(all, "ready", time.Now()); fmt.Sprint(blockers, dependents) != "[] [two taken epic child]" {
		t.Errorf("ready: %v, %v", blockers, dependents)
	}
	for ids, want := range map[string]string{"": "", "free": "", "ready": "child", "ready free": "two child"} {
		var names []string
		for _, f := range Following(all, strings.Fields(ids), time.Now()) {
			names = append(names, f.ID)
		}
		if text := strings.Join(names, " "); text != want {
			t.Errorf("after %s: %s, want %s", ids, text, want)
		}
	}
}
