package skill_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/agent/skill"
)

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// T-27: files and folders are read, the later place wins, and files that are not skills are ignored.
func TestLoad(t *testing.T) {
	one, two := t.TempDir(), t.TempDir()
	write(t, one, "playwright.md", "---\nname: playwright\ndescription: Old\n---\nOld.\n")
	write(t, one, "pdf/SKILL.md", "---\r\nname: pdf\r\ndescription: |\r\n  Reads PDF\r\n  files\r\nlicense: MIT\r\nallowed-tools: Read\r\n---\r\n# PDF\r\n")
	write(t, one, "pdf/more.md", "---\nname: x\n---\nx")
	write(t, one, "README.md", "# Skills\n")
	write(t, one, "notes.txt", "---\nname: x\n---\nx")
	write(t, two, "playwright.md", "---\ndescription: Browser automation\nmcp: [browser]\n---\n\nOpen the page.\n\n---\n\nMore.\n")
	got, problems := skill.Load(skill.Place{Dir: one, Show: "one"}, skill.Place{Dir: two, Show: "two"}, skill.Place{Dir: filepath.Join(one, "none"), Show: "none"})
	want := []skill.Skill{
		{Name: "pdf", Description: "Reads PDF files", Path: "one/pdf/SKILL.md", Body: "# PDF"},
		{Name: "playwright", Description: "Browser automation", MCP: []string{"browser"}, Path: "two/playwright.md", Hides: []string{"one/playwright.md"}, Body: "Open the page.\n\n---\n\nMore."},
	}
	if !reflect.DeepEqual(got, want) || len(problems) > 0 {
		t.Errorf("%+v %v", got, problems)
	}
}

func TestProblems(t *testing.T) {
	for text, want := range map[string]string{
		"---\nname: é\ndescription: x\n---\nx":                                     `here/ü.md: invalid name "é": use the letters a to z, because the name is that of a tool`,
		"---\nname: a\ndescription: x\n":                                           "here/ü.md: its frontmatter has no end: a line --- must follow its fields",
		"---\nname: a\n---\nx":                                                     "here/ü.md: it has no description",
		"---\nname: a\ndescription: x\n---\n":                                      "here/ü.md: it has no text",
		"---\nname: a\ndescription: [x\n---\nx":                                    "here/ü.md: its frontmatter cannot be read: ",
		"---\nname: a\ndescription: x\nmcp: y\n---\nx":                             "here/ü.md: its frontmatter cannot be read: ",
		"---\nname: a\ndescription: \xff\n---\nx":                                  "here/ü.md: it is not UTF-8 text",
		"---\nname: a\ndescription: x\n---\n" + strings.Repeat("x", skill.MaxFile): "here/ü.md: it is larger than",
	} {
		dir := t.TempDir()
		write(t, dir, "ü.md", text)
		all, problems := skill.Load(skill.Place{Dir: dir, Show: "here"})
		if len(all) > 0 || len(problems) != 1 || !strings.HasPrefix(problems[0].Error(), want) {
			t.Errorf("%.40q: %v %v, want %s", text, all, problems, want)
		}
	}
}

// A description that is too long is cut, and counted in characters.
func TestLongDescription(t *testing.T) {
	for length, want := range map[int]int{1024: 0, 1025: 1} {
		dir := t.TempDir()
		write(t, dir, "a.md", "---\nname: a\ndescription: "+strings.Repeat("ü", length)+"\n---\nx")
		all, problems := skill.Load(skill.Place{Dir: dir, Show: "here"})
		if len(all) != 1 || len([]rune(all[0].Description)) != 1024 || len(problems) != want {
			t.Errorf("%d: %v %v", length, all, problems)
		}
	}
}
