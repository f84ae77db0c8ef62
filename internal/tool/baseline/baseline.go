// Package baseline holds the three tools that every agent has, regardless of its definition:
// read_note, list_notes and semantic_search.
//
// Rules:
//   - Their permissions cannot be removed, but a rule may refuse a file. Each file is checked
//     before any part of it is returned; a search omits refused files.
//   - They read only regular files below the root. A link stands for its target, which must be
//     below the root and is checked under its own path.
//   - read_note also reads a file that git does not list, if it is named, but never git's own
//     directories.
package baseline

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/permission"
	"github.com/coven-run/coven/internal/search"
	"github.com/coven-run/coven/internal/tool"
)

// Options configures the tools of one agent.
type Options struct {
	Files    *search.Index // the agent's worktree, or another directory
	Sessions *search.Index // the records of sessions; nil: not searched
	// Check returns an error if a rule refuses a permission for a file, whose path is absolute.
	Check func(needed permission.Name, path string) error
}

// Tools returns the tools of an agent.
func Tools(o Options) []tool.Tool {
	return []tool.Tool{
		{
			Kind: tool.ReadNote, Category: category, ReadOnly: true, Call: call(o.readNote),
			Description: "Read a text file of the repository. Long files are returned in parts: continue with the offset that the last line names.",
			Schema: object([]string{"path"}, properties{
				"path":   {"string", "the file, relative to the top of the worktree"},
				"offset": {"integer", "the first line to return; 1 is the first of the file"},
				"limit":  {"integer", fmt.Sprintf("the number of lines to return; at most, and by default, %d", maxLines)},
			}),
		},
		{
			Kind: tool.ListNotes, Category: category, ReadOnly: true, Call: call(o.listNotes),
			Description: "List the files of the repository that git does not ignore.",
			Schema: object(nil, properties{
				"glob": {"string", "list only files that match, for example docs/**/*.md; a glob without a slash matches names in all directories"},
			}),
		},
		{
			Kind: tool.SemanticSearch, Category: category, ReadOnly: true, Call: call(o.semanticSearch),
			Description: "Find the files that best answer a query in words or identifiers. They are ranked by the words and identifiers that they share with the query (BM25), in their text, headings and paths; each has its best passage.",
			Schema: object([]string{"query"}, properties{
				"query":            {"string", "what to look for"},
				"limit":            {"integer", fmt.Sprintf("the number of files; %d by default, at most %d", search.DefaultLimit, maxHits)},
				"include_sessions": {"boolean", "search the records of earlier sessions, too"},
			}),
		},
	}
}

const category = "search"

// properties are the inputs of a tool: the type and description of each.
type properties map[string][2]string

func object(required []string, all properties) json.RawMessage {
	described := map[string]any{}
	for name, p := range all {
		described[name] = map[string]any{"type": p[0], "description": p[1]}
		if p[0] == "integer" {
			described[name] = map[string]any{"type": p[0], "description": p[1], "minimum": 1}
		}
	}
	schema := map[string]any{"type": "object", "properties": described, "additionalProperties": false}
	if len(required) > 0 {
		schema["required"] = required
	}
	text, err := json.Marshal(schema)
	if err != nil {
		panic(err) // strings and numbers only
	}
	return text
}

// call returns the Call of a tool that decodes its arguments strictly, and lets the next call begin at once.
func call[T any](do func(context.Context, T) (string, error)) func(context.Context, json.RawMessage) (string, error) {
	return func(ctx context.Context, raw json.RawMessage) (string, error) {
		tool.Begun(ctx)
		var input T
		if len(raw) > 0 {
			decoder := json.NewDecoder(bytes.NewReader(raw))
			decoder.DisallowUnknownFields()
			if err := decoder.Decode(&input); err != nil {
				return "", fmt.Errorf("invalid input: %w", err)
			}
		}
		return do(ctx, input)
	}
}

// allows reports whether no rule refuses any of the permissions for a file of an index.
func (o Options) allows(x *search.Index, permissions ...permission.Name) func(string) bool {
	return func(name string) bool {
		return !slices.ContainsFunc(permissions, func(p permission.Name) bool {
			return o.Check(p, filepath.Join(x.Root, filepath.FromSlash(name))) != nil
		})
	}
}

// maxListed limits the number of listed files.
const maxListed = 1000

type listInput struct {
	Glob string `json:"glob"`
}

func (o Options) listNotes(ctx context.Context, in listInput) (string, error) {
	files, err := o.Files.Files(ctx, in.Glob)
	if err != nil {
		return "", err
	}
	allowed := o.allows(o.Files, permission.FileRead)
	files = slices.DeleteFunc(files, func(name string) bool { return !allowed(name) })
	if len(files) == 0 {
		return "No files match.", nil
	}
	if len(files) > maxListed {
		return fmt.Sprintf("%s\n[%d of %d files: use a narrower glob]", strings.Join(files[:maxListed], "\n"), maxListed, len(files)), nil
	}
	return strings.Join(files, "\n"), nil
}

// maxHits limits the number of search results.
const maxHits = 50

type searchInput struct {
	Query           string `json:"query"`
	Limit           int    `json:"limit"`
	IncludeSessions bool   `json:"include_sessions"`
}

func (o Options) semanticSearch(ctx context.Context, in searchInput) (string, error) {
	switch {
	case strings.TrimSpace(in.Query) == "":
		return "", errors.New("query is empty")
	case in.Limit < 0:
		return "", errors.New("limit must be at least 1")
	}
	var out strings.Builder
	if err := o.search(ctx, &out, o.Files, "", in); err != nil {
		return "", err
	}
	if in.IncludeSessions && o.Sessions != nil {
		if err := o.search(ctx, &out, o.Sessions, search.SessionsDir, in); err != nil {
			return "", err
		}
	}
	if out.Len() == 0 {
		return "Nothing found.", nil
	}
	return out.String(), nil
}

// search writes the results from an index. prefix is prepended to their paths.
func (o Options) search(ctx context.Context, out *strings.Builder, x *search.Index, prefix string, in searchInput) error {
	var warning error
	hits, err := x.Query(ctx, in.Query, search.QueryOptions{Limit: min(in.Limit, maxHits), Keep: o.allows(x, permission.FileRead, permission.CodeSearch), Warn: func(err error) { warning = err }})
	if err != nil {
		return err
	}
	if warning != nil {
		fmt.Fprintf(out, "[ranked by words only: %v]\n\n", warning)
	}
	for _, h := range hits {
		fmt.Fprintf(out, "%s:%d (score %.1f)\n%s\n\n", path.Join(prefix, h.Path), h.Line, h.Score, h.Snippet)
	}
	return nil
}
