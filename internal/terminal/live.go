package terminal

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/text/oneline"
	"github.com/coven-run/coven/plugins/provider"
)

// Live shows a block of lines at the end of the terminal output: one for each running task, with its step,
// time, usage and current action, and below them the open question.
//
// Between writes, the cursor is at the beginning of the first of these lines. So they
// can be erased without knowing their number of rows, which depends on the window width.
type Live struct {
	out  io.Writer
	size func() (width, height int)
	now  func() time.Time
	keys *Keyboard // nil if questions are not possible
	term string    // type of the terminal

	mu     sync.Mutex
	tasks  []*liveTask // ordered by start
	titles map[string]string
	drawn  []string // lines on the terminal
	prompt Prompt   // open question
	hidden bool
	stop   chan struct{}
	once   sync.Once
}

// liveTask is a running task.
type liveTask struct {
	id, title, step, doing string
	since                  time.Time
	spent                  provider.Usage // by completed steps
	current                provider.Usage // by the running step so far
}

// NewLive returns live lines on out. size returns the size of the terminal, and term is
// its type. keys may be nil.
func NewLive(out io.Writer, size func() (int, int), now func() time.Time, keys *Keyboard, term string) *Live {
	l := &Live{out: out, size: size, now: now, keys: keys, term: term, stop: make(chan struct{}), titles: map[string]string{}}
	go l.watch()
	return l
}

// name gives the line of a task its title.
func (l *Live) name(task, title string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.titles[task] = title
}

// print writes lines above the live lines and updates them with the event.
func (l *Live) print(text string, e event.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.apply(e)
	l.draw(text)
}

// hide removes the live lines until unhide, so that another program can use the terminal.
func (l *Live) hide() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clear()
	l.hidden = true
}

func (l *Live) unhide() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hidden = false
	l.draw("")
}

// open makes the terminal report keys, discards earlier input, and shows a
// question. The user may answer immediately.
func (l *Live) open(p Prompt) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.keys.readKeys(takesInterrupt(p)); err != nil {
		return err
	}
	l.prompt, l.hidden = p, false
	l.draw("")
	return nil
}

// close removes the question.
func (l *Live) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.prompt = nil
	l.draw("")
	l.keys.Release()
}

// answer passes a message to the open question and reports whether it is answered.
func (l *Live) answer(msg tea.Msg) (tea.Cmd, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	cmd, done := l.prompt.update(msg)
	l.draw("")
	return cmd, done
}

// end removes the lines and stops updating them.
func (l *Live) end() {
	l.once.Do(func() { close(l.stop) })
	l.hide()
}

// watch redraws the lines every second, when the window is resized, and when the process
// continues after a stop.
func (l *Live) watch() {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	resized, continued := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	defer signal.Stop(resized)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	for {
		select {
		case <-l.stop:
			return
		case <-ticker.C:
			l.redraw(false)
		case <-resized:
			l.redraw(true)
		case <-continued:
			l.resume()
		}
	}
}

// redraw draws the lines if they have changed or if always is set.
func (l *Live) redraw(always bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if always && !l.hidden {
		l.clear()
	}
	l.draw("")
}

// stopTime limits how long a signal may take to stop the process.
const stopTime = 100 * time.Millisecond

// suspend returns the terminal to the shell and stops the process, like Ctrl-Z does while no
// question is open. It returns immediately if no shell could continue the process, because the
// kernel does not stop it then.
func (l *Live) suspend() {
	l.mu.Lock()
	l.clear()
	l.keys.Release()
	_ = syscall.Kill(0, syscall.SIGTSTP) // to the same processes as the terminal
	<-time.After(stopTime)
	l.mu.Unlock()
	l.resume()
}

// resume shows the lines and the question below the output of the shell.
func (l *Live) resume() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.prompt != nil {
		_ = l.keys.readKeys(takesInterrupt(l.prompt)) // on failure, keys are read with the next Enter
	}
	if !l.hidden {
		_, _ = io.WriteString(l.out, EraseBelow) // a closed terminal must not stop the run
	}
	l.drawn = nil
	l.draw("")
}

// clear removes the lines from the terminal.
func (l *Live) clear() {
	_, _ = io.WriteString(l.out, l.erase()) // a closed terminal must not stop the run
	l.drawn = nil
}

// draw writes text above the live lines, and redraws them if necessary.
func (l *Live) draw(above string) {
	if l.hidden {
		_, _ = io.WriteString(l.out, above)
		return
	}
	lines := l.block()
	if above == "" && slices.Equal(lines, l.drawn) {
		return
	}
	text := l.erase() + above + strings.Join(lines, "\n")
	if n := len(lines) - 1; n > 0 {
		text += fmt.Sprintf("\x1b[%dA", n)
	}
	if len(lines) > 0 {
		text += "\r"
	}
	l.drawn = lines
	_, _ = io.WriteString(l.out, text) // a closed terminal must not stop the run
}

// EraseBelow clears the terminal from the row of the cursor, where the live lines start.
const EraseBelow = "\r\x1b[J"

// erase returns the control sequence that clears the live lines.
func (l *Live) erase() string {
	if len(l.drawn) == 0 {
		return ""
	}
	return EraseBelow
}

// block returns the live lines and the question, one row of the terminal each.
func (l *Live) block() []string {
	lines := l.lines()
	if l.prompt == nil {
		return lines
	}
	width, height := l.size()
	room := max(width-1, 1)
	question := strings.Split(ansi.Wrap(l.prompt.view(room), room, ""), "\n")
	for i := range question {
		question[i] = strings.TrimRight(question[i], " ")
	}
	most := max(height-len(lines)-1, 1)
	return append(lines, question[max(len(question)-most, 0):]...)
}

// lines returns the live lines that fit the terminal.
func (l *Live) lines() []string {
	width, height := l.size()
	most := max(width-1, 1)
	var lines []string
	for _, t := range l.tasks {
		if t.step != "" {
			lines = append(lines, ansi.Truncate(t.line(l.now(), most), most, "…"))
		}
	}
	if room := max(height/2, 1); len(lines) > room {
		more := len(lines) - room + 1
		lines = append(lines[:room-1], ansi.Truncate(fmt.Sprintf("… and %d more", more), most, "…"))
	}
	return lines
}

// liveTitle is the length of a title in a live line, in characters.
const liveTitle = 24

// line returns the live line. If it is wider than width even without the action, it has only the end of the step's path, so that
// the time stays visible.
func (t *liveTask) line(now time.Time, width int) string {
	used := t.spent.Add(t.current)
	parts := []string{strings.TrimSpace(t.id + "  " + Clip(t.title, liveTitle)), t.step, max(now.Sub(t.since), 0).Round(time.Second).String()}
	if tokens := used.Tokens(); tokens > 0 {
		parts = append(parts, Tokens(tokens))
	}
	if used.CostUSD >= 0.005 {
		parts = append(parts, fmt.Sprintf("$%.2f", used.CostUSD))
	}
	if at := strings.LastIndexByte(t.step, '/'); at > 0 && ansi.StringWidth(strings.Join(parts, "  ")) > width {
		parts[1] = "…" + t.step[at:]
	}
	return Printable(strings.TrimSpace(strings.Join(append(parts, oneline.Of(t.doing)), "  ")))
}

// Tokens formats a number of tokens for people: 950 tok, 12.3k tok.
func Tokens(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d tok", n)
	case n < 1_000_000:
		return fmt.Sprintf("%.1fk tok", float64(n)/1000)
	}
	return fmt.Sprintf("%.1fM tok", float64(n)/1_000_000)
}

func (l *Live) apply(e event.Event) {
	if e.Task == "" {
		return
	}
	if e.Type.Stops() {
		l.tasks = slices.DeleteFunc(l.tasks, func(t *liveTask) bool { return t.id == e.Task })
		return
	}
	l.task(e.Task).take(e)
}

func (l *Live) task(id string) *liveTask {
	for _, t := range l.tasks {
		if t.id == id {
			return t
		}
	}
	t := &liveTask{id: id, title: l.titles[id]}
	l.tasks = append(l.tasks, t)
	return t
}

func (t *liveTask) take(e event.Event) {
	if t.step == "" && (e.Type == event.AgentStarted || e.Type == event.CheckStarted || e.Type == event.CheckWaiting || e.Type == event.LimitMet) {
		t.step, t.since = StepName(e.Path), e.Time // continues an interrupted step
	}
	switch e.Type {
	case event.StepStarted:
		t.step, t.doing, t.since, t.current = StepName(e.Path), "", e.Time, provider.Usage{}
	case event.AgentUsage:
		u := event.As[event.Usage](e)
		t.current = provider.Usage{
			InputTokens: u.Input, OutputTokens: u.Output, CacheReadTokens: u.CacheRead, CacheWriteTokens: u.CacheWrite, CostUSD: u.Cost,
		}
	case event.LimitMet:
		t.doing = "waiting (limit) until " + Clock(event.As[event.Limit](e).At, e.Time)
	case event.BatchStarted:
		t.doing = Together(event.As[event.Batch](e), t.id)
	case event.LimitOver, event.CheckEnded, event.CheckOnBase, event.ReviewGiven, event.BatchEnded:
		t.doing = "" // the action has ended
	case event.AgentTool:
		t.doing = event.As[event.Tool](e).Summary
	case event.CheckStarted:
		t.doing = event.As[event.Check](e).Text
	case event.CheckWaiting:
		t.doing = event.As[event.Text](e).Text
	case event.StepCompleted, event.StepParked:
		t.spent = t.spent.Add(event.As[event.Result](e).Usage)
		t.step, t.doing, t.current = "", "", provider.Usage{}
	}
}
