package project

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/file/regularfile"
)

// A Packer is a tool that copies the files of a checkout to others, with coven's records if its own ignore file does not
// leave them out.
type Packer struct {
	Does   string // such as: docker build copies
	Ignore string // its ignore file, which may not exist
}

// packers lists the tools, each with the files that show that a project uses it.
var packers = []struct {
	Packer
	signs []string
}{
	{Packer{"docker build copies", ".dockerignore"}, []string{"Dockerfile", "*.Dockerfile", "Dockerfile.*", "Containerfile"}},
	{Packer{"npm pack includes", ".npmignore"}, []string{".npmignore"}}, // without it, npm follows git
	{Packer{"vsce package includes", ".vscodeignore"}, []string{".vscodeignore"}},
	{Packer{"gcloud uploads", ".gcloudignore"}, []string{".gcloudignore"}},
	{Packer{"helm package includes", ".helmignore"}, []string{"Chart.yaml"}},
}

// maxIgnoreFile limits the size of an ignore file, in bytes.
const maxIgnoreFile = 1 << 20

// Packers returns the tools of a project whose ignore files do not leave coven's directory out.
func Packers(root string) ([]Packer, error) {
	var found []Packer
	for _, p := range packers {
		uses := slices.ContainsFunc(p.signs, func(sign string) bool {
			files, err := filepath.Glob(filepath.Join(root, sign))
			return err == nil && len(files) > 0
		})
		if !uses {
			continue
		}
		text, err := regularfile.ReadIn(root, p.Ignore, maxIgnoreFile)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("read %s: %w", p.Ignore, err)
		}
		if !leavesOut(string(text)) {
			found = append(found, p.Packer)
		}
	}
	return found, nil
}

// leavesOut reports whether a line of an ignore file matches coven's directory.
func leavesOut(ignore string) bool {
	for line := range strings.Lines(ignore) {
		pattern := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSpace(line), "/**"), "/")
		pattern = strings.TrimPrefix(strings.TrimPrefix(pattern, "**/"), "/")
		if slices.Contains([]string{".coven", ".*", "*", "**"}, pattern) {
			return true
		}
	}
	return false
}

// LeaveOut adds coven's directory to the tool's ignore file.
func (p Packer) LeaveOut(root string) error {
	file, err := regularfile.OpenFileIn(root, p.Ignore, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("change %s: %w", p.Ignore, err)
	}
	text, err := io.ReadAll(io.LimitReader(file, maxIgnoreFile))
	line := ".coven/\n"
	if len(text) > 0 && text[len(text)-1] != '\n' {
		line = "\n" + line
	}
	if err == nil {
		_, err = file.WriteString(line)
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("change %s: %w", p.Ignore, err)
	}
	return nil
}
