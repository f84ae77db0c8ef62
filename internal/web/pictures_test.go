package web

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// The pictures of the page in the documentation are small. UPDATE=1 takes them: each browser draws letters in its own way.
func TestPictures(t *testing.T) {
	const dir, most = "../../docs/page", 300 << 10
	if os.Getenv("UPDATE") != "" {
		takePictures(t, dir)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.webp"))
	if err != nil || len(files) != 6 {
		t.Fatal(files, err)
	}
	size := int64(0)
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	if size > most {
		t.Errorf("the pictures have %d bytes, more than %d", size, most)
	}
}

func takePictures(t *testing.T, dir string) {
	t.Helper()
	b := newTab(t)
	s := newSite(t)
	s.source.cards, s.source.files = plain(s.source.time, s.dir), usualFiles()
	asks := &s.source.cards[1]
	asks.Title, asks.View.Approvals[0].Impact = "Update the dependencies", "downloads a package, and runs its scripts"
	asks.View.Approvals[0].Until = s.source.time.Add(5 * time.Minute)
	writeEvents(t, s, "s2", 0, "the lock file is older than the manifest", "npm asks for a network")
	for _, size := range []struct {
		name, scheme  string
		width, height int64
	}{{"desktop", "light", 1180, 760}, {"phone", "dark", 390, 760}} {
		b.looks(size.scheme, size.width, size.height)
		b.do(chromedp.Navigate(s.LoginURL(s.host, "")))
		for name, path := range map[string]string{"board": "/", "task": "/task/app-c3d4", "review": "/task/app-a1b2/review?part=whole"} {
			b.do(chromedp.Navigate("http://" + s.host + path))
			b.is(`document.readyState === "complete" && (!log || log.childElementCount > 0)`)
			shot, err := chromedp.Call(b.ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{Format: "webp", Quality: new(int64(70))})
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name+"-"+size.name+".webp"), shot.Data, 0o644); err != nil { //nolint:gosec // it is in the repository
				t.Fatal(err)
			}
		}
	}
}
