package scheduler

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/task"
)

// tasks is a queue that records calls of Next while enough tasks are already working.
type tasks struct {
	width   int
	waiting []string
	closed  sync.Map
	crowded []string // the running tasks at each such call
}

func (q *tasks) Next(_ context.Context, busy map[string]bool) (items []project.Item, err error) {
	cleaning := 0
	for id := range busy {
		if _, closed := q.closed.Load(id); closed {
			cleaning++
		}
	}
	if len(busy)-min(cleaning, q.width) >= q.width {
		q.crowded = append(q.crowded, fmt.Sprint(busy))
	}
	for _, id := range q.waiting {
		items = append(items, project.Item{Task: task.Task{ID: id}})
	}
	return items, nil
}

func (q *tasks) Started(item project.Item) {
	q.waiting = slices.DeleteFunc(q.waiting, func(id string) bool { return id == item.Task.ID })
}

func (q *tasks) Done(project.Item) {}
func (q *tasks) Left() int         { return len(q.waiting) }

// While a closed task cleans up, the next one works. No more than Width tasks work, regardless of how many
// clean up.
func TestNextStartsWhenOneIsClosed(t *testing.T) {
	for _, width := range []int{1, 2} {
		t.Run(fmt.Sprint("width ", width), func(t *testing.T) {
			ids := []string{"1", "2", "3", "4", "5", "6"}
			queue := &tasks{width: width, waiting: slices.Clone(ids)}
			started, ends := make(chan string), map[string]chan bool{}
			for _, id := range ids {
				ends[id] = make(chan bool)
			}
			c, over := &control.Controller{Project: &project.Project{Env: project.NewEnv("test")}}, make(chan Summary, 1)
			s := &Scheduler{
				Controller: c, Queue: queue, Width: width,
				Observer: Observer{Idle: func() {}, Stopping: func() {}, Failed: func(err error) { t.Error(err) }, Over: func(s Summary) { over <- s }},
				Work: func(_ context.Context, item project.Item) (control.Outcome, error) {
					started <- item.Task.ID
					<-ends[item.Task.ID]
					return control.Outcome{Task: item.Task.ID, Status: event.StatusCompleted, Commit: "c"}, nil
				},
			}
			code := make(chan int)
			go func() { code <- s.Run(t.Context()) }()
			next := func(want ...string) {
				t.Helper()
				var got []string
				for range want {
					got = append(got, <-started)
				}
				if slices.Sort(got); !slices.Equal(got, want) {
					t.Fatalf("started: %s, want %s", got, want)
				}
			}
			closes := func(id string) {
				queue.closed.Store(id, true)
				c.Observer.Event(event.Event{Type: event.TaskClosed, Task: id})
			}
			next(ids[:width]...)
			closes("that of another coven")
			for i := range width { // each makes room once
				closes(ids[i])
				closes(ids[i])
				next(ids[width+i])
			}
			for _, id := range ids[width : 2*width] { // closed, but as many are already cleaning up
				closes(id)
			}
			ends[ids[0]] <- true
			next(ids[2*width])
			for _, id := range ids[1:] {
				go func() { ends[id] <- true }()
			}
			for range ids[2*width+1:] {
				<-started
			}
			if got := <-code; got != 0 {
				t.Errorf("exit code %d", got)
			}
			if s := <-over; s.Text() != "6 landed" {
				t.Errorf("the summary is %q", s.Text())
			}
			if len(queue.crowded) > 0 {
				t.Errorf("more tasks were wanted beside %s", queue.crowded)
			}
		})
	}
}
