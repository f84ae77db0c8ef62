package terminal

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/fake/fakescreen"
)

// window is a fake terminal with a variable size.
type window struct {
	*fakescreen.Window

	mu            sync.Mutex
	width, height int
}

func newWindow(width, height int) *window {
	return &window{Window: fakescreen.New(width, height), width: width, height: height}
}

// Write converts line ends like a terminal driver.
func (w *window) Write(p []byte) (int, error) {
	_, err := w.Window.Write(bytes.ReplaceAll(p, []byte("\n"), []byte("\r\n")))
	return len(p), err
}

func (w *window) size() (width, height int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.width, w.height
}

func (w *window) resize(width, height int) {
	w.mu.Lock()
	w.width, w.height = width, height
	w.mu.Unlock()
	w.Resize(width, height)
}

// noon is the start time on the screens below.
var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// newLive returns live lines in a window at noon plus 7 seconds. They are redrawn only by tests.
func newLive(t *testing.T, w *window) *Live {
	t.Helper()
	l := &Live{out: w, size: w.size, now: func() time.Time { return noon.Add(7 * time.Second) }, stop: make(chan struct{})}
	t.Cleanup(l.end)
	return l
}

// see shows an event together with its printed lines.
func see(l *Live, kind event.Type, task, path, data string) {
	e := event.Event{Type: kind, Task: task, Path: path, Time: noon}
	if data != "" {
		e.Data = []byte(data)
	}
	l.print(TaskLines(e), e)
}

// twoTasks shows two running tasks whose lines are longer than 80 columns.
func twoTasks(l *Live) {
	for _, task := range []string{"bd-1", "bd-2"} {
		see(l, event.StepStarted, task, "implement#1", "")
		see(l, event.AgentTool, task, "implement#1", fmt.Sprintf(`{"summary":"Bash go test ./internal/%s -run %s"}`, task, strings.Repeat("x", 60)))
	}
}

// Lines fit the window. A shrinking window leaves no remains of wider lines,
// whether the terminal rewraps or truncates its lines.
func TestLiveFitsTheWindow(t *testing.T) {
	x60 := strings.Repeat("x", 60)
	live := func(width int) []string {
		var lines []string
		for _, task := range []string{"bd-1", "bd-2"} {
			line := []rune(task + "  implement  7s  Bash go test ./internal/" + task + " -run " + x60)
			if len(line) > width-1 {
				line = append(line[:width-2], '…')
			}
			lines = append(lines, string(line))
		}
		return lines
	}
	for _, truncates := range []bool{false, true} {
		w := newWindow(200, 40)
		w.Truncates = truncates
		l := newLive(t, w)
		twoTasks(l)
		for _, width := range []int{200, 80, 40, 20, 100} {
			w.resize(width, 40)
			l.redraw(true)
			rows := strings.Split(strings.TrimSpace(w.Text()), "\n")
			var got []string
			for _, row := range rows {
				if strings.Contains(row, "  implement  ") {
					got = append(got, row)
				}
			}
			if want := live(width); !slices.Equal(got, want) || !slices.Equal(rows[len(rows)-2:], want) {
				t.Errorf("width %d, truncates %v:\n%s\nwant at the end only:\n%s", width, truncates, w.Text(), strings.Join(want, "\n"))
			}
		}
	}
}

// A path that leaves no room for the time loses its beginning.
func TestLiveShowsTheTime(t *testing.T) {
	w := newWindow(60, 40)
	l := newLive(t, w)
	see(l, event.StepStarted, "p-a-name-of-thirty-characters", "revise@1/quality[1]/tests[1]/run-tests", "")
	for width, want := range map[int]string{60: "…/run-tests  7s", 100: "revise@1/quality[1]/tests[1]/run-tests  7s"} {
		w.resize(width, 40)
		l.redraw(true)
		if want = "p-a-name-of-thirty-characters  " + want; !strings.HasSuffix(strings.TrimSpace(w.Text()), "\n"+want) {
			t.Errorf("width %d:\n%s\nwant at the end: %s", width, w.Text(), want)
		}
	}
}

// A line shows the current action of its task, not one that has ended.
func TestLiveShowsNoStaleAction(t *testing.T) {
	w := newWindow(80, 40)
	l := newLive(t, w)
	for _, step := range []struct {
		kind event.Type
		data string
		want string // the last line
	}{
		{event.StepStarted, ``, "bd-1  work  7s"},
		{event.AgentTool, `{"summary":"Bash make"}`, "bd-1  work  7s  Bash make"},
		{event.LimitMet, `{"account":"a","at":"2026-01-02T12:30:00Z"}`, "bd-1  work  7s  waiting (limit) until " + Clock(noon.Add(30*time.Minute), noon)},
		{event.LimitOver, ``, "bd-1  work  7s"},
		{event.CheckStarted, `{"text":"make test"}`, "bd-1  work  7s  make test"},
		{event.CheckEnded, ``, "bd-1  work  7s"},
		{event.AgentTool, `{"summary":"Bash make"}`, "bd-1  work  7s  Bash make"},
		{event.StepCompleted, `{"ok":true}`, "bd-1  work: done"},
		{event.StepStarted, ``, "bd-1  work  7s"},
		{event.AgentTool, `{"summary":"Bash make"}`, "bd-1  work  7s  Bash make"},
		{event.StepParked, ``, "bd-1    → Bash make"},
		{event.AgentStarted, ``, "bd-1  work  7s"},
		{event.AgentTool, `{"summary":"Bash make"}`, "bd-1  work  7s  Bash make"},
		{event.SessionWaiting, ``, "bd-1    → Bash make"},
	} {
		see(l, step.kind, "bd-1", "work#1", step.data)
		rows := strings.Split(strings.TrimSpace(w.Text()), "\n")
		if got := rows[len(rows)-1]; got != step.want {
			t.Errorf("after %s the last line is %q, want %q", step.kind, got, step.want)
		}
	}
}

// The question appears below the live lines and fits the window. Lines are printed above both.
func TestLivePrompt(t *testing.T) {
	w := newWindow(200, 40)
	l := newLive(t, w)
	see(l, event.StepStarted, "bd-1", "work#1", "")
	l.prompt = &Choice{Question: "bd-2", Options: []Option{{Key: "a", Word: "approve"}, {Key: "r", Word: "reject"}, {Key: "?"}}}
	see(l, event.Warning, "bd-1", "work#1", `{"text":"slow"}`)
	for width, want := range map[int]string{
		200: "bd-1  work: started\nbd-1  warning: slow\nbd-1  work  7s\nbd-2  [a]pprove [r]eject [?]\n",
		22:  "bd-1  work: started\nbd-1  warning: slow\nbd-1  work  7s\nbd-2  [a]pprove\n[r]eject [?]\n",
	} {
		w.resize(width, 40)
		l.redraw(true)
		if got := w.Text(); got != want {
			t.Errorf("width %d:\n%s\nwant:\n%s", width, got, want)
		}
	}
	w.resize(22, 2)
	l.redraw(true)
	if got := w.Text(); !strings.HasSuffix(got, "[r]eject [?]\n") {
		t.Errorf("in 2 rows:\n%s", got)
	}
}
