// Package docs holds coven's documentation for users, as coven help prints it: the guides
// and the descriptions of file formats.
package docs

import (
	"embed"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/text/lazyregexp"
)

//go:embed guides/*.md formats/*.md
var pages embed.FS

// Topic is a page of the documentation.
type Topic struct {
	Name  string // config
	Kind  string // formats or guides
	Title string // the first heading
	Text  string // Markdown; links to other topics are commands
}

// Topics returns all topics: guides first, then formats, by name.
func Topics() []Topic {
	var all []Topic
	for _, kind := range []string{"guides", "formats"} {
		files, _ := fs.ReadDir(pages, kind) // embedded
		for _, f := range files {
			name := strings.TrimSuffix(f.Name(), ".md")
			all = append(all, read(kind, name))
		}
	}
	return all
}

// Find returns a topic by its name.
func Find(name string) (Topic, bool) {
	all := Topics()
	i := slices.IndexFunc(all, func(t Topic) bool { return t.Name == name })
	if i < 0 {
		return Topic{}, false
	}
	return all[i], true
}

func read(kind, name string) Topic {
	text, _ := pages.ReadFile(path.Join(kind, name+".md")) // embedded
	title, _, _ := strings.Cut(string(text), "\n")
	return Topic{Name: name, Kind: kind, Title: strings.TrimPrefix(title, "# "), Text: linked(string(text))}
}

// link matches a Markdown link to another page.
var link = lazyregexp.New(`\[([^\]]*)\]\((?:\.\./(?:guides|formats)/)?([a-z-]+)\.md(?:#[^)]*)?\)`)

// linked replaces the links to topics by the commands that print them.
func linked(text string) string {
	return link.ReplaceAllStringFunc(text, func(found string) string {
		m := link.FindStringSubmatch(found)
		_, guide := fs.Stat(pages, "guides/"+m[2]+".md")
		_, format := fs.Stat(pages, "formats/"+m[2]+".md")
		if guide != nil && format != nil {
			return found
		}
		return m[1] + " (coven help " + m[2] + ")"
	})
}
