package search

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"gopkg.in/yaml.v3"
)

// SessionsDir is the directory of session records, relative to the repository.
const SessionsDir = ".coven/sessions"

// SessionFiles returns a List of the Markdown files of sessions. Each session has a directory in root.
func SessionFiles(root string) List {
	return func(context.Context) (Listing, error) {
		var l Listing
		sessions, err := os.ReadDir(root)
		if err != nil {
			return l, err
		}
		for _, session := range sessions {
			if !session.IsDir() {
				continue
			}
			files, err := os.ReadDir(filepath.Join(root, session.Name()))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return l, err
			}
			for _, file := range files {
				switch name := path.Join(session.Name(), file.Name()); {
				case file.IsDir():
					l.Ignored = append(l.Ignored, name)
				case isMarkdown(name) && !strings.HasPrefix(file.Name(), "."):
					l.Files = append(l.Files, name)
				}
			}
		}
		return l, nil
	}
}

// Fields returns the frontmatter of a text: the YAML between two --- lines. Lists and
// maps are formatted as YAML.
func Fields(text []byte) map[string]string {
	rest, ok := strings.CutPrefix(strings.ReplaceAll(string(text), "\r\n", "\n"), "---\n")
	front, _, end := strings.Cut(rest, "\n---\n")
	var values map[string]yaml.Node
	if !ok || !end || yaml.Unmarshal([]byte(front), &values) != nil {
		return nil
	}
	fields := map[string]string{}
	for key, node := range values {
		if node.Kind == yaml.ScalarNode {
			fields[key] = node.Value
		} else if out, err := yaml.Marshal(&node); err == nil {
			fields[key] = strings.TrimSpace(string(out))
		}
	}
	return fields
}

// With returns the files whose frontmatter has all of the fields.
func (x *Index) With(paths []string, fields map[string]string) ([]string, error) {
	if len(fields) == 0 || len(paths) == 0 {
		return paths, nil
	}
	root, err := os.OpenRoot(x.Root)
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // read only
	var kept []string
	for _, path := range paths {
		text, _ := readText(root, path)
		if has(Fields(text), fields) {
			kept = append(kept, path)
		}
	}
	return kept, nil
}

func has(all, wanted map[string]string) bool {
	for key, value := range wanted {
		if got, ok := all[key]; !ok || got != value {
			return false
		}
	}
	return true
}
