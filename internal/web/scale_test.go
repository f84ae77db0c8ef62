package web

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"

	"github.com/coven-run/coven/internal/control/review"
)

// added returns a file with a number of added lines.
func added(path string, lines int, text string) review.File {
	h := review.Hunk{Header: fmt.Sprintf("@@ -0,0 +1,%d @@", lines)}
	for i := range lines {
		h.Lines = append(h.Lines, review.Line{Op: gitdiff.OpAdd, New: i + 1, Text: fmt.Sprintf("line %d: %s", i+1, text)})
	}
	return review.File{Path: path, Status: "A", Added: lines, FromStart: true, Content: path, Hunks: []review.Hunk{h}}
}

// many returns 500 files.
func many() (files []review.File) {
	for i := range 500 {
		files = append(files, added(fmt.Sprintf("internal/part%d/file%d.go", i%20, i), 100, "some text of a usual length, which a person reads"))
	}
	return files
}

// The review of a large change is soon there, and does not need much memory of the browser. The limits have room for a machine that
// others use.
func TestBrowserScale(t *testing.T) {
	const paint, memory = time.Second, 50 << 20
	allowed := 5 * paint
	if os.Getenv("COVEN_LONG") != "" {
		allowed = paint
	}
	b := newTab(t)
	for name, files := range map[string][]review.File{
		"500 files":               many(),
		"a file of 100,000 lines": {added("large.txt", 100_000, "some text of a usual length, which a person reads")},
		"lines of 5 MB":           {added("bundle.js", 20, strings.Repeat("x", 5<<20))},
	} {
		s := newSite(t)
		s.source.cards, s.source.files = plain(s.source.time, s.dir), files
		b.do(chromedp.Navigate(s.LoginURL(s.host, "")), chromedp.Navigate("http://"+s.host+"/task/app-a1b2/review?part=whole"))
		b.is(`document.querySelectorAll(".file").length > 0 && performance.getEntriesByName("first-contentful-paint").length > 0`)
		ms, err := chromedp.Run(b.ctx, chromedp.Evaluate[float64](`performance.getEntriesByName("first-contentful-paint")[0].startTime`))
		if err != nil {
			t.Fatal(err)
		}
		b.is(`(document.querySelector(".file").open = true) && document.querySelector(".file tr.line") !== null`)
		used := b.memory()
		took := time.Duration(ms * float64(time.Millisecond))
		t.Logf("%s: first paint after %s, %.1f MB", name, took.Round(time.Millisecond), used/(1<<20))
		if took > allowed {
			t.Errorf("%s: first paint after %s", name, took)
		}
		if used > memory {
			t.Errorf("%s: %.1f MB", name, used/(1<<20))
		}
		s.stop()
	}
}

// memory returns the bytes that the browser reports for the page: those of its scripts, and those of its nodes, of which each has
// about 400.
func (b *tab) memory() float64 {
	b.t.Helper()
	if _, err := chromedp.Call(b.ctx, performance.Enable, performance.EnableParams{}); err != nil {
		b.t.Fatal(err)
	}
	if _, err := chromedp.Call(b.ctx, heapprofiler.CollectGarbage, cdp.Empty{}); err != nil {
		b.t.Fatal(err)
	}
	found, err := chromedp.Call(b.ctx, performance.GetMetrics, cdp.Empty{})
	if err != nil {
		b.t.Fatal(err)
	}
	metrics := map[string]float64{}
	for _, m := range found.Metrics {
		metrics[m.Name] = m.Value
	}
	b.t.Logf("%.1f MB of scripts, %.0f nodes", metrics["JSHeapUsedSize"]/(1<<20), metrics["Nodes"])
	return metrics["JSHeapUsedSize"] + 400*metrics["Nodes"]
}
