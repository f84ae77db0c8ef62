package task

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/coven-run/coven/internal/regularfile"
)

const (
	idLength  = 4 // characters after the prefix, more when those are used up
	maxPrefix = 40
)

// newID makes an id that no line of the file has: PREFIX-xxxx, as bd does.
func newID(d *document, path string) (string, error) {
	prefix, err := prefixOf(d, filepath.Dir(path))
	if err != nil {
		return "", err
	}
	for tries := 0; ; tries++ {
		id := prefix + "-" + suffix(idLength+tries/8)
		if _, taken := d.line[id]; !taken {
			return id, nil
		}
	}
}

func suffix(length int) string {
	letters := strings.ToLower(rand.Text()) // base 32: a to z, 2 to 7
	for len(letters) < length {
		letters += strings.ToLower(rand.Text())
	}
	return letters[:length]
}

// prefixOf is what new ids begin with: the prefix that the configuration of
// beads names, else the one that most tasks have, else the repository's name.
func prefixOf(d *document, beads string) (string, error) {
	prefix, err := configured(beads)
	if err != nil || prefix != "" {
		return prefix, err
	}
	if prefix := usual(d); prefix != "" {
		return prefix, nil
	}
	abs, err := filepath.Abs(beads)
	if err != nil {
		return "", err
	}
	return prefixFrom(filepath.Base(filepath.Dir(abs))), nil
}

func configured(beads string) (string, error) {
	path := filepath.Join(beads, "config.yaml")
	data, err := regularfile.Read(path, maxSetting)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the prefix of task ids: %s: %w", path, err)
	}
	var c struct {
		Prefix string `yaml:"issue-prefix"`
	}
	if err := yaml.Unmarshal(data, &c); err != nil {
		return "", fmt.Errorf("read the prefix of task ids: %s: %w", path, err)
	}
	return strings.TrimSuffix(c.Prefix, "-"), nil
}

// generated matches ids as beads makes them; children have .1, .2 and so on.
var generated = regexp.MustCompile(`^(.+)-[0-9a-z]{1,8}(\.[0-9]+)*$`)

// usual is the prefix of most ids, of the first in the file among equals.
func usual(d *document) string {
	count, first, best := map[string]int{}, map[string]int{}, ""
	for id, line := range d.line {
		m := generated.FindStringSubmatch(id)
		if m == nil {
			continue
		}
		if at, seen := first[m[1]]; !seen || line < at {
			first[m[1]] = line
		}
		count[m[1]]++
	}
	for prefix, n := range count {
		if best == "" || n > count[best] || n == count[best] && first[prefix] < first[best] {
			best = prefix
		}
	}
	return best
}

// prefixFrom makes a prefix of a directory's name.
func prefixFrom(name string) string {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
	prefix := strings.Join(words, "-")
	if len(prefix) > maxPrefix {
		prefix = strings.TrimRight(prefix[:maxPrefix], "-")
	}
	if prefix == "" {
		return "task"
	}
	return prefix
}
