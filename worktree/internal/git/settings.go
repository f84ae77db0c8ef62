package git

import (
	"context"
	"errors"
	"strings"
)

// Configured returns the user's settings whose keys match the regular expression,
// weakest first, without the neutral ones. If asPath is set, values are treated as
// paths: ~ is expanded.
func (r Repo) Configured(ctx context.Context, pattern string, asPath bool) ([]Setting, error) {
	r.Settings, r.Env = nil, append([]string{"GIT_CONFIG_COUNT=0"}, r.Env...)
	args := []string{"config", "-z"}
	if asPath {
		args = append(args, "--type=path")
	}
	fields, err := r.Fields(ctx, append(args, "--get-regexp", pattern)...)
	if failed, ok := errors.AsType[*Error](err); ok && failed.ExitCode == 1 && failed.Stderr == "" {
		return nil, nil // no such key
	}
	if err != nil {
		return nil, err
	}
	var found []Setting
	for _, field := range fields {
		key, value, _ := strings.Cut(field, "\n")
		found = append(found, Setting{Key: key, Value: value})
	}
	return found, nil
}

// Enabled reports whether a setting of the user is true. An unset one is false; a
// value that is not a boolean is an error.
func (r Repo) Enabled(ctx context.Context, key string) (bool, error) {
	r.Settings, r.Env = nil, append([]string{"GIT_CONFIG_COUNT=0"}, r.Env...)
	value, err := r.Line(ctx, "config", "--type=bool", "--get", key)
	if failed, ok := errors.AsType[*Error](err); ok && failed.ExitCode == 1 && failed.Stderr == "" {
		return false, nil
	}
	return value == "true", err
}
