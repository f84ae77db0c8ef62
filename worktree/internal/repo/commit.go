package repo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/coven-run/coven/worktree/internal/git"
)

// MakeCommit stores a commit. author contains environment variables that set the author. It may be nil.
func (r *Repo) MakeCommit(ctx context.Context, tree, message string, author []string, parents ...string) (string, error) {
	return r.StoreCommit(ctx, git.NewCommit{Tree: tree, Message: message, Parents: parents}, author)
}

// StoreCommit is MakeCommit for a commit with options.
func (r *Repo) StoreCommit(ctx context.Context, c git.NewCommit, author []string) (string, error) {
	g := r.Git()
	if r.Redact != nil {
		c.Message = r.Redact(c.Message)
	}
	c.Message = git.CleanMessage(c.Message)
	identity, err := r.identity(ctx)
	if err != nil {
		return "", err
	}
	g.Env = append(identity, author...)
	return g.StoreCommit(ctx, c)
}

// ErrSignTime means that the signing program was stopped. It may have waited for a passphrase that no user can enter.
var ErrSignTime = errors.New("no signature in time")

// StoreSigned is StoreCommit for a commit that git signs with the user's key. It takes at most limit.
func (r *Repo) StoreSigned(ctx context.Context, c git.NewCommit, author []string, limit time.Duration) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w: after %v", ErrSignTime, limit))
	defer cancel()
	c.Options = []string{"-S"}
	return r.StoreCommit(ctx, c, author)
}

// The identity of the committer if the user has none configured.
const (
	FallbackName  = "coven"
	FallbackEmail = "coven@localhost"
)

// CovenIdentity returns the variables that make coven the author and committer, whatever git's configuration says.
func CovenIdentity() []string {
	var env []string
	for _, who := range []string{"AUTHOR", "COMMITTER"} {
		env = append(env, "GIT_"+who+"_NAME="+FallbackName, "GIT_"+who+"_EMAIL="+FallbackEmail)
	}
	return env
}

// identity returns environment variables that complete the user's identity. Without them, git would derive
// it from the host name, or fail.
func (r *Repo) identity(ctx context.Context) ([]string, error) {
	settings, err := r.Git().Configured(ctx, `^(user|author|committer)\.(name|email)$`, false)
	if err != nil {
		return nil, err
	}
	has := map[string]bool{}
	for _, s := range settings {
		has[s.Key] = s.Value != ""
	}
	var env []string
	for _, who := range []string{"author", "committer"} {
		variable := "GIT_" + strings.ToUpper(who) + "_"
		if os.Getenv(variable+"NAME") == "" && !has[who+".name"] && !has["user.name"] {
			env = append(env, variable+"NAME="+FallbackName)
		}
		known := os.Getenv(variable+"EMAIL") != "" || os.Getenv("EMAIL") != ""
		if !known && !has[who+".email"] && !has["user.email"] {
			env = append(env, variable+"EMAIL="+FallbackEmail)
		}
	}
	return env, nil
}

// HasIdentity reports whether git's configuration or environment names the user, so that commits are in their name.
// Otherwise coven commits in its own name.
func (r *Repo) HasIdentity(ctx context.Context) (bool, error) {
	missing, err := r.identity(ctx)
	return len(missing) == 0, err
}

// Editor returns the user's editor in git's configuration, or "" if it names none.
func (r *Repo) Editor(ctx context.Context) (string, error) {
	settings, err := r.Git().Configured(ctx, `^core\.editor$`, false)
	if err != nil || len(settings) == 0 {
		return "", err
	}
	return strings.TrimSpace(settings[len(settings)-1].Value), nil
}
