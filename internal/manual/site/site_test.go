package main

import (
	"context"
	"encoding/json"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/dop251/goja"
	"golang.org/x/net/html"
)

var root = filepath.Join("..", "..", "..")

// Every page of the documentation is in the site. All links lead to files and headings of the site, and no page
// loads anything from elsewhere.
func TestSite(t *testing.T) {
	dir := t.TempDir()
	n, err := write(root, dir)
	if err != nil {
		t.Fatal(err)
	}
	site := os.DirFS(dir)
	for _, pattern := range firstPages {
		files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, %v", pattern, files, err)
		}
		for _, file := range files {
			rel, err := filepath.Rel(root, file)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := fs.Stat(site, address(filepath.ToSlash(rel))); err != nil {
				t.Errorf("%s is no page: %v", rel, err)
			}
		}
	}
	pages := 0
	links, ids := map[string][]string{}, map[string][]string{}
	err = fs.WalkDir(site, ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || path.Ext(name) != ".html" {
			return err
		}
		pages++
		links[name], ids[name] = readPage(t, site, name)
		return nil
	})
	if err != nil || pages != n || n < 70 {
		t.Errorf("%d of %d pages, %v", pages, n, err)
	}
	for name, to := range links {
		for _, l := range to {
			follow(t, site, name, l, ids)
		}
	}
	again := t.TempDir()
	if _, err := write(root, again); err != nil {
		t.Fatal(err)
	}
	same(t, site, os.DirFS(again))
}

// readPage returns the links and the IDs of a page.
func readPage(t *testing.T, site fs.FS, name string) (links, ids []string) {
	t.Helper()
	f, err := site.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // read only
	doc, err := html.Parse(f)
	if err != nil {
		t.Fatal(err)
	}
	for n := range doc.Descendants() {
		for _, a := range n.Attr {
			switch {
			case a.Key == "id":
				ids = append(ids, a.Val)
			case a.Key == "src" || a.Key == "href" && n.Data != "a":
				if strings.Contains(a.Val, "//") {
					t.Errorf("%s loads %s", name, a.Val)
				}
				links = append(links, a.Val)
			case a.Key == "href":
				links = append(links, a.Val)
			}
		}
	}
	return links, ids
}

// follow follows a link in a page.
func follow(t *testing.T, site fs.FS, name, to string, ids map[string][]string) {
	t.Helper()
	u, err := url.Parse(to)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	if u.Scheme == "https" || u.Scheme == "http" {
		return
	}
	target := name
	if u.Path != "" {
		target = path.Join(path.Dir(name), u.Path)
	}
	if info, err := fs.Stat(site, target); err != nil || info.IsDir() {
		t.Errorf("%s links to %s: %v", name, to, err)
	}
	if u.Fragment != "" && !slices.Contains(ids[target], u.Fragment) {
		t.Errorf("%s links to %s: there is no such heading", name, to)
	}
}

// same compares the files of two sites.
func same(t *testing.T, one, two fs.FS) {
	t.Helper()
	err := fs.WalkDir(one, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		a, err := fs.ReadFile(one, name)
		if err != nil {
			return err
		}
		if b, err := fs.ReadFile(two, name); err != nil || string(a) != string(b) {
			t.Errorf("%s differs: %v", name, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A link that leads nowhere is an error with the page, the path and the heading.
func TestBrokenLinks(t *testing.T) {
	s, err := read(fstest.MapFS{
		"README.md": {Data: []byte("# A\n\n[b](docs/b.md#here) [self](#a) [out](https://example.invalid/x) [list](docs) [file](LICENSE)\n" +
			"[no page](docs/c.md) [no heading](docs/b.md#there) [no file](x.txt) ![no picture](x.svg)\n")},
		"docs/b.md": {Data: []byte("# B\n\n## Here\n\n[up](../README.md)\n\n## Here\n\n[second](#here-1) <script>alert(1)</script>\n")},
		"LICENSE":   {Data: []byte("free")},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := "README.md links to docs/c.md, which does not exist\nREADME.md links to docs/b.md#there: there is no such heading\n" +
		"README.md links to x.txt, which does not exist\nREADME.md links to x.svg, which does not exist"
	if err := s.check(); err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
	if !s.files["LICENSE"] || s.pages["docs/index.md"] == nil {
		t.Errorf("%v, %v", s.files, s.pages)
	}
	page, err := s.render(s.pages["docs/b.md"])
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`href="../index.html"`, `<h2 id="here-1">`, `href="#here-1"`, `<script src="../search.js">`} {
		if !strings.Contains(string(page), part) {
			t.Errorf("%s is not in the page\n%s", part, page)
		}
	}
	if strings.Contains(string(page), "alert") && strings.Contains(string(page), "<script>alert") {
		t.Errorf("HTML of a page is in the site\n%s", page)
	}
}

// The search finds sections by words of their heading and text.
func TestSearch(t *testing.T) {
	s, err := read(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	index, err := s.index()
	if err != nil {
		t.Fatal(err)
	}
	browser := goja.New()
	for _, script := range []string{string(searchScript), string(index)} {
		if _, err := browser.RunString(script); err != nil {
			t.Fatal(err)
		}
	}
	for query, want := range map[string]string{
		"squash message":   "docs/guides/landing.html#",
		"worktree.pool_gb": "docs/formats/config.html#",
		"Rate LIMITS":      "docs/formats/config.html#rate-limits",
		"goldmark":         "docs/decisions/goldmark.html#",
		"coven approve":    "docs/commands.html#coven-approve",
		"xyzzy sandbox":    "", "  ": "",
	} {
		if err := browser.Set("query", query); err != nil {
			t.Fatal(err)
		}
		v, err := browser.RunString("JSON.stringify(find(sections, query).map((s) => s.address))")
		if err != nil {
			t.Fatal(err)
		}
		var found []string
		if err := json.Unmarshal([]byte(v.String()), &found); err != nil {
			t.Fatal(err)
		}
		if want == "" && len(found) > 0 || want != "" && !slices.ContainsFunc(found[:min(3, len(found))], func(a string) bool { return strings.HasPrefix(a, want) }) {
			t.Errorf("%q: %v, want %s", query, found, want)
		}
	}
	v, err := browser.RunString(`excerpt("a ".repeat(100) + "the needle is here, " + "b ".repeat(200), "NEEDLE")`)
	if err != nil || !strings.HasPrefix(v.String(), "… ") || !strings.Contains(v.String(), "the needle") || !strings.HasSuffix(v.String(), " …") {
		t.Errorf("%v, %v", v, err)
	}
}

// In a browser, the search shows links to sections while one types, and the page again without a query.
func TestSearchInBrowser(t *testing.T) {
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("there is no Chromium")
	}
	dir := t.TempDir()
	if _, err := write(root, dir); err != nil {
		t.Fatal(err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.UserDataDir(t.TempDir()), chromedp.WSURLReadTimeout(time.Minute),
		chromedp.NoSandbox) // it needs namespaces, which a container may not have
	ctx, stop := chromedp.NewExecAllocator(t.Context(), options...)
	defer stop()
	ctx, closeTab := chromedp.NewContext(ctx)
	defer closeTab()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := chromedp.Do(ctx, chromedp.Navigate("file://"+dir+"/docs/guides/sandbox.html"), chromedp.SendKeys("input", "rate limits"),
		chromedp.WaitVisible("#results a")); err != nil {
		t.Fatal(err)
	}
	to, err := chromedp.Run(ctx, chromedp.Evaluate[string]("document.querySelector('#results a').href"))
	if err != nil || !strings.Contains(to, "#") {
		t.Fatalf("%q, %v", to, err)
	}
	if err := chromedp.Do(ctx, chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible("#"+to[strings.Index(to, "#")+1:])); err != nil {
		t.Fatal(err)
	}
	if at, err := chromedp.Run(ctx, chromedp.Evaluate[string]("location.href")); err != nil || at != to {
		t.Errorf("%q, %v, want %s", at, err, to)
	}
}
