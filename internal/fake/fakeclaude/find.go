package fakeclaude

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// glob lists the files whose path, relative to the directory, matches the pattern.
func (f *files) glob(c call, input object) outcome {
	pattern, err := globPattern(text(input, "pattern"))
	if err != nil {
		return failed(c, err.Error())
	}
	return f.find(c, input, func(path, _ string) bool { return pattern.MatchString(path) })
}

// grep lists the files with a line that matches the regular expression.
func (f *files) grep(c call, input object) outcome {
	pattern, err := regexp.Compile("(?m)" + text(input, "pattern"))
	if err != nil {
		return failed(c, err.Error())
	}
	return f.find(c, input, func(_, full string) bool {
		data, err := os.ReadFile(full)
		return err == nil && !bytes.ContainsRune(data, 0) && pattern.Match(data)
	})
}

func (f *files) find(c call, input object, fits func(path, full string) bool) outcome {
	root := f.path(input, "path")
	var found []string
	err := filepath.WalkDir(root, func(full string, item fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case item.IsDir() && item.Name() == ".git":
			return filepath.SkipDir
		case !item.Type().IsRegular():
			return nil
		}
		path, err := filepath.Rel(root, full)
		if err == nil && fits(path, full) {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		return failed(c, err.Error())
	}
	if len(found) == 0 {
		return succeeded(c, "No files found")
	}
	return succeeded(c, strings.Join(found, "\n"))
}

// globPattern converts a glob to a regular expression. * and ? do not match a
// slash; ** does.
func globPattern(glob string) (*regexp.Regexp, error) {
	expression := regexp.QuoteMeta(glob)
	expression = strings.NewReplacer(`\*\*/`, `(.*/)?`, `\*\*`, `.*`, `\*`, `[^/]*`, `\?`, `[^/]`).Replace(expression)
	return regexp.Compile("^" + expression + "$")
}
