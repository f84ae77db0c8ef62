package main

import (
	"bytes"
	"fmt"
	"net/url"
	"path"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// page is a page of the documentation.
type page struct {
	path     string // in the repository
	title    string // the first heading
	source   []byte
	doc      ast.Node
	headings []string // their IDs
	links    []link   // in the repository
	sections []section
}

// link is a link to a path in the repository, and to a heading there, which may be "".
type link struct{ target, heading string }

// section is a text below a heading, for the search.
type section struct {
	Page    string `json:"page"`
	Heading string `json:"heading"`
	Address string `json:"address"`
	Text    string `json:"text"`
}

var markdown = goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithParserOptions(parser.WithAutoHeadingID()))

// parse parses a page and makes its links lead to files of the site. resolve returns the file to which a link to a path leads.
func parse(file string, source []byte, resolve func(string) string) *page {
	p := &page{path: file, source: source}
	ids := &headingIDs{used: map[string]int{}}
	p.doc = markdown.Parser().Parse(text.NewReader(source), parser.WithContext(parser.NewContext(parser.WithIDs(ids))))
	_ = ast.Walk(p.doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			p.heading(n)
		case *ast.Link:
			n.Destination = p.link(string(n.Destination), resolve)
		case *ast.Image:
			n.Destination = p.link(string(n.Destination), resolve)
		case *ast.Text:
			p.collect(n.Segment.Value(source))
			if n.SoftLineBreak() {
				p.collect([]byte(" "))
			}
		case *ast.String:
			p.collect(n.Value)
		default:
			if n.Type() == ast.TypeBlock {
				p.collect([]byte(" "))
				p.lines(n)
			}
		}
		return ast.WalkContinue, nil
	})
	return p
}

// heading begins a section.
func (p *page) heading(n *ast.Heading) {
	words := plain(n, p.source)
	id, _ := n.AttributeString("id")
	name, _ := id.([]byte)
	p.headings = append(p.headings, string(name))
	if p.title == "" {
		p.title = words
	}
	p.sections = append(p.sections, section{Page: p.title, Heading: words, Address: address(p.path) + "#" + string(name)})
}

// collect adds a text to the present section.
func (p *page) collect(words []byte) {
	if len(p.sections) > 0 {
		p.sections[len(p.sections)-1].Text += string(words)
	}
}

// lines adds the lines of a code block to the present section.
func (p *page) lines(n ast.Node) {
	if n.Kind() != ast.KindFencedCodeBlock && n.Kind() != ast.KindCodeBlock {
		return
	}
	for i := range n.Lines().Len() {
		line := n.Lines().At(i)
		p.collect(line.Value(p.source))
	}
}

// link records a link and returns its destination in the site.
func (p *page) link(to string, resolve func(string) string) []byte {
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "" || u.Host != "" {
		return []byte(to)
	}
	target := p.path
	if u.Path != "" {
		target = resolve(path.Join(path.Dir(p.path), u.Path))
	}
	p.links = append(p.links, link{target, u.Fragment})
	there := relative(p.path, target)
	if target == p.path && u.Fragment != "" {
		there = ""
	}
	if u.Fragment != "" {
		there += "#" + u.Fragment
	}
	return []byte(there)
}

// plain returns the text of a node without its markup.
func plain(n ast.Node, source []byte) string {
	var b strings.Builder
	for child := n.FirstChild(); child != nil; child = child.NextSibling() {
		switch child := child.(type) {
		case *ast.Text:
			b.Write(child.Segment.Value(source))
		case *ast.String:
			b.Write(child.Value)
		default:
			b.WriteString(plain(child, source))
		}
	}
	return b.String()
}

// html returns the page's content.
func (p *page) html() (string, error) {
	var b bytes.Buffer
	if err := markdown.Renderer().Render(&b, p.source, p.doc); err != nil {
		return "", fmt.Errorf("render %s: %w", p.path, err)
	}
	return b.String(), nil
}

// headingIDs makes the IDs of headings as GitHub does, so that a link works there and here.
type headingIDs struct{ used map[string]int }

// Generate returns the ID of a heading.
func (h *headingIDs) Generate(value []byte, _ ast.NodeKind) []byte {
	id := strings.Map(func(r rune) rune {
		switch {
		case r == ' ' || r == '-':
			return '-'
		case r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		default:
			return -1
		}
	}, strings.TrimSpace(string(value)))
	n := h.used[id]
	h.used[id]++
	if n > 0 {
		id = fmt.Sprintf("%s-%d", id, n)
	}
	return []byte(id)
}

// Put records an ID that a page sets itself.
func (h *headingIDs) Put(value []byte) { h.used[string(value)]++ }
