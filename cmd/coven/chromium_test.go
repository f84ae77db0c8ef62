package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/rogpeppe/go-internal/testscript"
)

// chromium returns the path of an installed Chromium.
func chromium() (string, error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if program, err := exec.LookPath(name); err == nil {
			return program, nil
		}
	}
	return "", errors.New("there is no Chromium")
}

// cmdChromium implements chromium FILE STEP...: it opens the last address in the output of coven web, which FILE contains, in a
// real browser, and does the steps there. The browser starts with a login, and ends after the steps. A STEP may be
//
// opens PATH         open the page at PATH
// sees TEXT          wait until the page shows TEXT
// is EXPRESSION      wait until an expression of JavaScript is true
// clicks SELECTOR    wait until the page has the element, and click it
// types SELECTOR TEXT type TEXT, where \n is Enter, into the element; a selector has no spaces
// keys TEXT          type TEXT into the focused element, or the page
// tab NAME           go to another tab of the same browser, where the next steps happen
// !COMMAND           run a shell command at the same time
func cmdChromium(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: chromium FILE STEP...")
	}
	login := loginAddress(ts, args[0])
	program, err := chromium()
	ts.Check(err)
	profile, err := os.MkdirTemp("", "chromium")
	ts.Check(err)
	defer os.RemoveAll(profile) //nolint:errcheck // a temporary directory
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.UserDataDir(profile), chromedp.WSURLReadTimeout(patience),
		chromedp.NoSandbox) // it needs namespaces, which a container may not have; the pages are those of the test
	ctx, stop := chromedp.NewExecAllocator(context.Background(), options...)
	defer stop()
	ctx, closeTab := chromedp.NewContext(ctx)
	defer closeTab()
	ts.Check(chromedp.Do(ctx)) // starts the browser, which ends with ctx
	w := &window{ts: ts, ctx: ctx, site: login[:strings.Index(login, "/login")], tabs: map[string]context.Context{"": ctx}}
	w.do("opens "+login, chromedp.Navigate(login))
	for _, step := range args[1:] {
		w.step(strings.ReplaceAll(step, "{}", ts.Getenv("FOUND")))
	}
}

// window is a real browser that is logged in.
type window struct {
	ts   *testscript.TestScript
	ctx  context.Context //nolint:containedctx // chromedp has the window in it
	tabs map[string]context.Context
	site string
}

func (w *window) step(step string) {
	word, rest, _ := strings.Cut(step, " ")
	if strings.HasPrefix(step, "!") {
		meanwhile(w.ts, step[1:])
		return
	}
	switch word {
	case "tab":
		if w.tabs[rest] == nil {
			w.tabs[rest], _ = chromedp.NewContext(w.tabs[""]) // ends with the browser
			w.ts.Check(chromedp.Do(w.tabs[rest]))
		}
		w.ctx = w.tabs[rest]
	case "opens":
		w.do(step, chromedp.Navigate(w.site+rest))
	case "sees":
		w.is(step, `document.body.innerText.replace(/\s+/g, " ").includes(`+strconv.Quote(rest)+`)`)
	case "is":
		w.is(step, rest)
	case "clicks":
		// A mouse could miss an element that moves, as the page shows more at the same time.
		w.is(step, `(e => !!e && (e.click(), true))(document.querySelector(`+strconv.Quote(rest)+`))`)
	case "types":
		selector, text, _ := strings.Cut(rest, " ")
		w.do(step, chromedp.SendKeys[chromedp.CSS](chromedp.CSS(selector), strings.ReplaceAll(text, `\n`, kb.Enter)))
	case "keys":
		w.is(step, `document.readyState === "complete"`) // its scripts have run
		for _, key := range strings.ReplaceAll(rest, `\n`, kb.Enter) {
			w.do(step, chromedp.KeyEvent(string(key)))
		}
	default:
		w.ts.Fatalf("chromium: no step %q", step)
	}
}

// do performs a step, which must end.
func (w *window) do(step string, action chromedp.Action[chromedp.Void]) {
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, action); err != nil {
		w.fail(step, err)
	}
}

// is waits until an expression is true.
func (w *window) is(step, expression string) {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); pause() {
		ctx, cancel := context.WithDeadline(w.ctx, deadline)
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool](expression))
		if cancel(); ok && err == nil {
			return
		}
	}
	w.fail(step, context.DeadlineExceeded)
}

func (w *window) fail(step string, err error) {
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	text, _ := chromedp.Run(ctx, chromedp.Evaluate[string]("location.href + '\\n' + document.body.innerText")) // it may have ended
	w.ts.Fatalf("%s: %v; the page:\n%s", step, err, text)
}
