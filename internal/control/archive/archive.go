// Package archive works on the records of sessions: it checks their links, exports them for other programs,
// and removes old ones.
//
// Rules. It never changes a record. It removes no session that can continue or that has a worktree. If a
// session did not land, its snapshots stay when its record is removed.
package archive

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/text/lazyregexp"
)

// maxRecord is the maximum size in bytes of a record that is read.
const maxRecord = 64 << 20

// storyName is the name, without extension, of the record of the session itself.
const storyName = "session"

// linkRE matches a link to a record: [[name]] or [[name|text]].
var linkRE = lazyregexp.New(`\[\[([^\]|\n]+)(\|[^\]\n]*)?\]\]`)

// record is one Markdown file of a session.
type record struct {
	name  string // without .md
	text  string
	links []string
}

// records reads the Markdown files of a session, by name.
func records(dir string) (map[string]record, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read the session: %w", err)
	}
	all := map[string]record{}
	for _, e := range entries {
		name, isRecord := strings.CutSuffix(e.Name(), ".md")
		if !isRecord || strings.HasPrefix(name, ".") {
			continue
		}
		text, err := regularfile.ReadIn(dir, e.Name(), maxRecord)
		if err != nil {
			return nil, fmt.Errorf("read the record %s: %w", name, err)
		}
		r := record{name: name, text: string(text)}
		for _, m := range linkRE.FindAllStringSubmatch(r.text, -1) {
			r.links = append(r.links, m[1])
		}
		all[name] = r
	}
	return all, nil
}

// Check returns the problems of the records of a session: each must have valid frontmatter, each link must
// lead to a record, and the session and its subagents must link to each other.
func Check(dir string, subagents []string) ([]string, error) {
	all, err := records(dir)
	if err != nil {
		return nil, err
	}
	var wrong []string
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	story, ok := all[storyName]
	if !ok {
		say("%s.md is missing", storyName)
	}
	for _, name := range sorted(all) {
		r := all[name]
		if err := frontmatter(r.text); err != nil {
			say("%s.md: its frontmatter is not valid: %v", name, err)
		}
		for _, link := range r.links {
			if _, ok := all[link]; !ok {
				say("%s.md links to %s, which does not exist", name, link)
			}
		}
		if name != storyName && !slices.Contains(r.links, storyName) {
			say("%s.md does not link to the session", name)
		}
		if name != storyName && !slices.Contains(story.links, name) {
			say("%s.md does not link to %s", storyName, name)
		}
		if name != storyName && !slices.Contains(subagents, name) {
			say("%s.md is the record of no subagent", name)
		}
	}
	for _, id := range subagents {
		if _, ok := all[id]; !ok {
			say("the record of the subagent %s is missing", id)
		}
	}
	return wrong, nil
}

func sorted(all map[string]record) []string {
	var names []string
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// frontmatter returns an error if a record has no valid frontmatter.
func frontmatter(text string) error {
	rest, ok := strings.CutPrefix(text, "---\n")
	front, _, closed := strings.Cut(rest, "\n---\n")
	if !ok || !closed {
		return errors.New("it has none")
	}
	var fields map[string]any
	return yaml.Unmarshal([]byte(front), &fields)
}

// Export copies the records of a session to DIR/ID, with links that work in a folder with several sessions,
// such as an Obsidian vault. It replaces an earlier export of the session.
func Export(from, dir string) error {
	all, err := records(from)
	if err != nil {
		return err
	}
	id := filepath.Base(from)
	to, err := folder(from, dir)
	if err != nil {
		return fmt.Errorf("export session %s: %w", id, err)
	}
	for _, name := range sorted(all) {
		text := linkRE.ReplaceAllStringFunc(all[name].text, func(link string) string {
			target := linkRE.FindStringSubmatch(link)[1]
			if _, ok := all[target]; !ok {
				return link
			}
			return "[[" + id + "/" + target + "|" + target + "]]"
		})
		if err := regularfile.Replace(filepath.Join(to, name+".md"), []byte(text), 0o600); err != nil {
			return fmt.Errorf("export session %s: %w", id, err)
		}
	}
	return nil
}

// folder creates the folder of an exported session in dir. It does not follow a link in place of the
// folder, and refuses a dir among the records.
func folder(from, dir string) (to string, err error) {
	if err := checkOutside(filepath.Dir(from), dir); err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	to = filepath.Join(dir, filepath.Base(from))
	if err := os.Mkdir(to, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	if info, err := os.Lstat(to); err != nil || !info.IsDir() {
		return "", errors.Join(fmt.Errorf("%s is not a directory", to), err)
	}
	return to, nil
}

// checkOutside returns an error if dir, which need not exist, is the directory records or inside it.
func checkOutside(records, dir string) error {
	own, err := os.Stat(records)
	if err != nil {
		return err
	}
	at, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	place, err := filepath.EvalSymlinks(at)
	for errors.Is(err, fs.ErrNotExist) && at != filepath.Dir(at) {
		at = filepath.Dir(at)
		place, err = filepath.EvalSymlinks(at)
	}
	if err != nil {
		return err
	}
	for up := ""; place != up; place, up = filepath.Dir(place), place {
		if info, err := os.Stat(place); err == nil && os.SameFile(info, own) {
			return fmt.Errorf("%s is among the records of the sessions themselves", dir)
		}
	}
	return nil
}

// remove removes the directory of a session. It moves it to .coven/run first, so that a kill does not leave
// a partial session.
func remove(root, id string) error {
	dir, gone := filepath.Join(root, session.Dir, id), filepath.Join(root, ".coven", "run", "removed-"+id)
	if err := os.MkdirAll(filepath.Dir(gone), 0o700); err != nil {
		return fmt.Errorf("remove session %s: %w", id, err)
	}
	if err := os.RemoveAll(gone); err != nil {
		return fmt.Errorf("remove session %s: %w", id, err)
	}
	if err := os.Rename(dir, gone); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove session %s: %w", id, err)
	}
	if err := os.RemoveAll(gone); err != nil {
		return fmt.Errorf("remove session %s: %w", id, err)
	}
	return nil
}
