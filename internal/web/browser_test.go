package web

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/coven-run/coven/internal/board"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/plugins/reviewer"
)

// patience is how long a browser may take for a step.
const patience = time.Minute

// tab is a tab of a real browser.
type tab struct {
	t   *testing.T
	ctx context.Context //nolint:containedctx // chromedp has the tab in it
}

// newTab starts a browser, or skips the test if there is none.
func newTab(t *testing.T) *tab {
	t.Helper()
	program := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			program = found
			break
		}
	}
	if program == "" {
		t.Skip("there is no Chromium")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.UserDataDir(t.TempDir()), chromedp.WSURLReadTimeout(patience),
		chromedp.NoSandbox) // it needs namespaces, which a container may not have; the pages are those of the test
	ctx, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	ctx, closeTab := chromedp.NewContext(ctx)
	t.Cleanup(closeTab)
	b := &tab{t, ctx}
	if err := chromedp.Do(ctx); err != nil { // starts the browser, which ends with ctx
		t.Fatal(err)
	}
	return b
}

// do runs steps, which must end.
func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// is waits until an expression is true.
func (b *tab) is(expression string) {
	b.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-time.After(20 * time.Millisecond) {
		if ok, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](expression)); ok && err == nil {
			return
		}
	}
	text, err := chromedp.Run(b.ctx, chromedp.Evaluate[string]("document.documentElement.outerHTML"))
	b.t.Fatalf("never %s: %v\n%s", expression, err, text)
}

// click clicks an element. The page may replace elements at any time, so that chromedp's own actions can miss one.
func (b *tab) click(selector string) { b.t.Helper(); b.is(call(selector, "click")) }

// focus focuses an element, as click does.
func (b *tab) focus(selector string) { b.t.Helper(); b.is(call(selector, "focus")) }

func call(selector, method string) string {
	return fmt.Sprintf("((e) => { e?.%s(); return e !== null; })(document.querySelector(%q))", method, selector)
}

// looks sets the color scheme and the size of the window.
func (b *tab) looks(scheme string, width, height int64) {
	b.t.Helper()
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, media); err != nil {
		b.t.Fatal(err)
	}
	b.do(chromedp.EmulateViewport(width, height))
}

// shot stores a screenshot of the whole page in $COVEN_SHOTS.
func (b *tab) shot(name string) {
	b.t.Helper()
	png, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		b.t.Fatal(err)
	}
	dir := os.Getenv("COVEN_SHOTS")
	if dir == "" {
		dir = b.t.TempDir()
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// plain has cards as they are on a usual day.
func plain(now time.Time, dir string) []board.Card {
	view := func(id string, status event.Status, reason event.WaitReason) session.View {
		v := session.View{ID: id, Task: id, Dir: filepath.Join(dir, id)}
		v.Status, v.Reason, v.Worktree = status, reason, "/src/app.coven/"+id
		v.Used.USD, v.Used.Tokens, v.Updated = 0.42, 183000, now
		v.Steps = []session.Step{
			{Path: "implement#1", Status: session.Completed, Summary: "Added the flag, its test, and a line in the README."},
			{Path: "review#1", Status: session.Completed, Summary: "2 findings"},
			{Path: "land#1", Status: session.Running, Doing: "make test"},
		}
		return v
	}
	review := view("s1", session.Waiting, event.WaitReview)
	review.Open = []event.Finding{{Step: "review", Reviewer: "agent", Finding: reviewer.Finding{Severity: reviewer.Error, File: "cmd/app/main.go", Line: 31, Message: "the flag is parsed after the configuration is read, so --version fails without one", Suggestion: "parse it first"}}}
	review.Receipts = []event.Receipt{{Command: "make test", Duration: 12 * time.Second}, {Command: "make lint", ExitCode: 2, Duration: time.Second}}
	asks := view("s2", session.Running, "")
	asks.Approvals = []session.Approval{{Approval: event.Approval{N: 1, Agent: "build", Tool: "Bash", Subject: "npm install left-pad", Permission: "process.run", Reason: "no rule allows npm install", Until: now.Add(5 * time.Minute)}}}
	done := view("s5", session.Completed, "")
	return []board.Card{
		{Section: board.NeedsYou, Task: "app-a1b2", Short: "a1", Title: "Add a --version flag", State: "waiting (review)", Text: "1 error finding is open", Next: "coven review app-a1b2", Cost: 0.42, Since: now.Add(-3 * time.Minute), View: review},
		{Section: board.NeedsYou, Task: "app-c3d4", Short: "c3", Title: "Überarbeite 日本語の文書 and a very long title that does not fit into any line of a telephone", State: "waiting (approval)", Text: "build asks for approval: Bash npm install left-pad", Next: "coven approvals list", Cost: 1.31, Since: now.Add(-2 * time.Hour), View: asks},
		{Section: board.Running, Task: "app-e5f6", Short: "e5", Title: "Cache the parser", State: "running", Text: "implement: Bash make test", Cost: 1.2, Since: now.Add(-40 * time.Second), View: view("s3", session.Running, "")},
		{Section: board.Waiting, Task: "app-g7h8", Short: "g7", Title: "Document the cache", State: "waiting", Text: "after app-e5f6"},
		{Section: board.Landed, Task: "app-i9j0", Short: "i9", Title: "Fix the typo in the installation guide", State: "completed", Text: "landed 1f2e3d4c5b: Fixed the typo.", Cost: 0.08, Since: now.Add(-5 * time.Hour), View: done},
	}
}

// The board and a task fit into a window and a telephone, light and dark.
func TestBrowserSizes(t *testing.T) {
	b := newTab(t)
	s := newSite(t)
	s.source.cards = plain(s.source.time, s.dir)
	writeEvents(t, s, "s1", 0, "the first", "the second", strings.Repeat("a long line ", 30))
	for _, size := range []struct {
		name          string
		width, height int64
	}{{"desktop", 1280, 800}, {"phone", 390, 844}} {
		for _, scheme := range []string{"light", "dark"} {
			b.looks(scheme, size.width, size.height)
			b.do(chromedp.Navigate(s.LoginURL(s.host, "")))
			for name, path := range map[string]string{"board": "/", "task": "/task/app-a1b2", "question": "/task/app-c3d4", "costs": "/costs", "login": "/login"} {
				b.do(chromedp.Navigate("http://" + s.host + path))
				if name == "task" {
					b.is(`document.querySelectorAll("#log div").length === 3`)
				}
				b.is(`document.documentElement.scrollWidth <= innerWidth`)
				b.shot(strings.Join([]string{name, size.name, scheme}, "-"))
			}
		}
	}
}

// The page shows events while they happen, and after the server was killed and started again, without a gap or a double. It does
// not lose a text that a person writes, nor the open form around it.
func TestBrowserLive(t *testing.T) {
	b := newTab(t)
	s := newSite(t)
	s.source.cards = plain(s.source.time, s.dir)
	writeEvents(t, s, "s1", 0, "event 1")
	lines := func(n int) string {
		return fmt.Sprintf(`[...document.querySelectorAll("#log div")].map((d) => d.textContent).join() === Array.from({length: %d}, (_, i) => "warning: event " + (i + 1)).join()`, n)
	}
	b.do(chromedp.Navigate(s.LoginURL(s.host, "app-a1b2")))
	b.is(lines(1))
	b.click(`[id="/task/app-a1b2/do/r"] summary`)
	b.focus(`[id="/task/app-a1b2/do/r"] textarea`)
	b.do(chromedp.KeyEvent("use it"))
	writeEvents(t, s, "s1", 1, "event 2", "event 3")
	s.source.mu.Lock()
	s.source.cards[0].State = "another state"
	s.source.mu.Unlock()
	s.source.changed <- struct{}{}
	b.is(lines(3))
	b.is(`document.querySelector("#state strong").textContent === "another state"`)
	s.again(t)
	writeEvents(t, s, "s1", 3, "event 4")
	b.is(lines(4))
	b.is(`document.querySelector('[id="/task/app-a1b2/do/r"] textarea').value === "use it" && document.querySelector('[id="/task/app-a1b2/do/r"]').open`)
	version, _ := s.hub.version()
	b.is(`document.getElementById("connection").textContent === "" && !loading && at === "` + version + `"`)
	b.click(`[id="/task/app-a1b2/do/r"] button`)
	b.is(`document.querySelector("#commands code")?.textContent === "coven revise app-a1b2 -m 'use it'"`)
	if got := s.source.commands(); got != `[["revise" "app-a1b2" "-m" "use it"]]` {
		t.Error(got)
	}
}

// The page can be used with the keys alone.
func TestBrowserKeys(t *testing.T) {
	b := newTab(t)
	s := newSite(t)
	s.source.cards = plain(s.source.time, s.dir)
	b.do(chromedp.Navigate(s.LoginURL(s.host, "")), chromedp.KeyEvent("j"), chromedp.KeyEvent("j"), chromedp.KeyEvent("k"), chromedp.KeyEvent(kb.Enter))
	b.is(`location.pathname === "/task/app-a1b2"`)
	b.focus(`[id="/task/app-a1b2/do/a"] summary`)
	b.do(chromedp.KeyEvent(kb.Enter), chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Enter))
	b.is(`document.querySelector("#commands code")?.textContent === "coven approve app-a1b2"`)
}

// A browser runs no script of an agent.
func TestBrowserScript(t *testing.T) {
	b := newTab(t)
	s := newSite(t)
	writeEvents(t, s, "s1", 0, script)
	ran := make(chan string, 1)
	err := chromedp.Listen(b.ctx, func(e any) {
		if dialog, ok := e.(*page.EventJavascriptDialogOpening); ok {
			ran <- dialog.Message
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	b.do(chromedp.Navigate(s.LoginURL(s.host, "app-1")))
	b.is(`document.querySelectorAll("#log div").length === 1`)
	s.source.changed <- struct{}{}
	b.do(chromedp.Navigate("http://" + s.host + "/"))
	b.is(`document.querySelectorAll(".card").length === 5`)
	select {
	case message := <-ran:
		t.Error("a script ran:", message)
	default:
	}
	answer, _ := s.request(http.MethodGet, "/assets/manifest.json", "")
	if answer.StatusCode != http.StatusOK {
		t.Error(answer.StatusCode)
	}
}

// axe-core, whose script $COVEN_AXE names, finds no fault of accessibility: labels, contrast, landmarks.
func TestBrowserAccessible(t *testing.T) {
	file := os.Getenv("COVEN_AXE")
	if file == "" {
		t.Skip("set COVEN_AXE to axe.min.js of axe-core")
	}
	axe, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	b := newTab(t)
	s := newSite(t)
	s.source.cards, s.source.files = plain(s.source.time, s.dir), usualFiles()
	writeEvents(t, s, "s1", 0, "the first")
	const faults = `axe.run(document).then((found) => { window.faults = found.violations.map((v) => v.impact + " " + v.id + ": " + v.nodes.map((n) => n.html).join(", ")).join("\n") }, (e) => { window.faults = String(e) })`
	for _, scheme := range []string{"light", "dark"} {
		b.looks(scheme, 1280, 800)
		b.do(chromedp.Navigate(s.LoginURL(s.host, "")))
		for _, path := range []string{"/", "/task/app-a1b2", "/task/app-c3d4", "/costs", "/login", "/task/app-a1b2/review?part=whole", "/task/app-a1b2/review?part=whole&view=split&at=cmd/app/main.go:12"} {
			b.do(chromedp.Navigate("http://" + s.host + path))
			b.do(chromedp.Evaluate[chromedp.Void](`for (const d of document.querySelectorAll("details")) d.open = true`))
			b.do(chromedp.Evaluate[chromedp.Void](string(axe)), chromedp.Evaluate[chromedp.Void](faults))
			b.is(`window.faults !== undefined`)
			text, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](`window.faults`))
			if err != nil || text != "" {
				t.Errorf("%s %s: %s %v", scheme, path, text, err)
			}
		}
	}
}
