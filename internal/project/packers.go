package project

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
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

// Packers returns the tools of a project whose ignore files do not leave coven's directory out. The error names those that
// cannot be read.
func Packers(root string) (found []Packer, failed error) {
	files, err := os.ReadDir(root)
	if err != nil {
		return nil, fmt.Errorf("read the checkout: %w", err)
	}
	for _, p := range packers {
		uses := slices.ContainsFunc(files, func(file os.DirEntry) bool {
			return slices.ContainsFunc(p.signs, func(sign string) bool {
				ok, err := path.Match(sign, file.Name())
				return err == nil && ok
			})
		})
		if !uses {
			continue
		}
		text, err := regularfile.ReadIn(root, p.Ignore, maxIgnoreFile)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = errors.Join(failed, fmt.Errorf("read %s: %w", p.Ignore, err))
			continue
		}
		if !leavesOut(string(text)) {
			found = append(found, p.Packer)
		}
	}
	return found, failed
}

// leavesOut reports whether an ignore file leaves coven's directory out: the last line that matches it decides.
func leavesOut(ignore string) bool {
	out := false
	for line := range strings.Lines(ignore) {
		pattern, again := strings.CutPrefix(strings.TrimSpace(line), "!")
		pattern = strings.TrimSuffix(strings.TrimSuffix(pattern, "/**"), "/")
		pattern = strings.TrimPrefix(strings.TrimPrefix(pattern, "**/"), "/")
		if slices.Contains([]string{".coven", ".*", "*", "**"}, pattern) {
			out = !again
		}
	}
	return out
}

// LeaveOut adds coven's directory to the tool's ignore file.
func (p Packer) LeaveOut(root string) error {
	file, err := regularfile.OpenFileIn(root, p.Ignore, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("change %s: %w", p.Ignore, err)
	}
	text, err := io.ReadAll(io.LimitReader(file, maxIgnoreFile))
	if err == nil && bytes.ContainsRune(text, 0) {
		err = errors.New("it is not UTF-8: add .coven/ by hand")
	}
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
