package docs_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/coven-run/coven/docs"
)

// Every page is a topic, with a title and without links that only work in the repository.
func TestTopics(t *testing.T) {
	seen := map[string]bool{}
	for _, topic := range docs.Topics() {
		if topic.Title == "" || strings.HasPrefix(topic.Title, "#") || seen[topic.Name] {
			t.Errorf("%+v", topic)
		}
		seen[topic.Name] = true
		for _, link := range regexp.MustCompile(`\]\(([^)]*)\)`).FindAllStringSubmatch(topic.Text, -1) {
			outside := strings.HasPrefix(link[1], "../../") || strings.HasPrefix(link[1], "https://") || strings.HasPrefix(link[1], "#")
			if !outside {
				t.Errorf("%s: link %s", topic.Name, link[1])
			}
		}
		for _, named := range regexp.MustCompile(`\(coven help ([a-z-]+)\)`).FindAllStringSubmatch(topic.Text, -1) {
			if _, ok := docs.Find(named[1]); !ok {
				t.Errorf("%s: there is no topic %s", topic.Name, named[1])
			}
		}
	}
	for _, kind := range []string{"guides", "formats"} {
		files, err := os.ReadDir(kind)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if !seen[strings.TrimSuffix(f.Name(), ".md")] {
				t.Errorf("%s is no topic", f.Name())
			}
		}
	}
	for _, topic := range docs.Topics() {
		_, text, _ := strings.Cut(topic.Text, "\n\n")
		if _, err := os.Stat("guides/" + topic.Name + ".md"); err == nil && !strings.HasPrefix(text, "For ") {
			t.Errorf("guides/%s.md does not begin with the people it is for", topic.Name)
		}
	}
	if _, ok := docs.Find("nothing"); ok || len(seen) < 18 {
		t.Errorf("%d topics", len(seen))
	}
}
