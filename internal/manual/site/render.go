package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"path"
	"slices"
	"strings"
)

var (
	//go:embed assets/page.html
	layout string
	//go:embed assets/style.css
	style []byte
	//go:embed assets/search.js
	searchScript []byte

	layoutTemplate = template.Must(template.New("page").Parse(layout))
)

// group is a group of links in the menu.
type group struct {
	Name  string
	Pages []entry
}

// entry is a link in the menu.
type entry struct {
	Title, Address string
	Here           bool // it is the page that is shown
}

// render returns the HTML of a page.
func (s *site) render(p *page) ([]byte, error) {
	content, err := p.html()
	if err != nil {
		return nil, err
	}
	root := strings.Repeat("../", strings.Count(address(p.path), "/"))
	var b bytes.Buffer
	err = layoutTemplate.Execute(&b, map[string]any{
		"Title": p.title, "Root": root, "Menu": s.menu(p),
		"Content": template.HTML(content), //nolint:gosec // from our own Markdown, in which goldmark leaves no HTML
	})
	if err != nil {
		return nil, fmt.Errorf("render %s: %w", p.path, err)
	}
	return b.Bytes(), nil
}

// menu returns the links beside a page.
func (s *site) menu(p *page) []group {
	groups := []group{{Name: "Start"}, {Name: "Guides"}, {Name: "Formats"}, {Name: "Reference"}, {Name: "Decisions"}}
	places := map[string]int{"README.md": 0, "CHANGELOG.md": 0, "CONTRIBUTING.md": 0, "docs/guides": 1, "docs/formats": 2, "docs": 3, "docs/decisions": 4}
	for _, file := range slices.Sorted(maps.Keys(s.pages)) {
		at, named := places[file]
		if !named {
			at, named = places[path.Dir(file)]
		}
		if named && path.Base(file) != "index.md" {
			groups[at].Pages = append(groups[at].Pages, entry{s.pages[file].title, relative(p.path, file), file == p.path})
		}
	}
	for _, g := range groups[1:] {
		slices.SortFunc(g.Pages, func(a, b entry) int { return strings.Compare(strings.ToLower(a.Title), strings.ToLower(b.Title)) })
	}
	slices.Reverse(groups[0].Pages)
	return groups
}

// index returns the script with the sections of all pages.
func (s *site) index() ([]byte, error) {
	var all []section
	for _, file := range slices.Sorted(maps.Keys(s.pages)) {
		for _, part := range s.pages[file].sections {
			part.Text = strings.Join(strings.Fields(part.Text), " ")
			all = append(all, part)
		}
	}
	text, err := json.Marshal(all)
	if err != nil {
		return nil, fmt.Errorf("make the index: %w", err)
	}
	return slices.Concat([]byte("sections = "), text, []byte(";\n")), nil
}
