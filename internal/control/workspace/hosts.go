package workspace

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/sandbox/egress"
	"github.com/coven-run/coven/worktree/diff"
	"github.com/coven-run/coven/worktree/remote"
)

// endpoints returns the URLs of the model APIs that the agent CLIs use.
func endpoints(getenv func(string) string) []string {
	urls := []string{"https://api.anthropic.com", "https://api.openai.com", "https://chatgpt.com", "https://auth.openai.com"}
	for _, name := range []string{"ANTHROPIC_BASE_URL", "OPENAI_BASE_URL"} {
		if url := getenv(name); url != "" {
			urls = append(urls, url)
		}
	}
	return urls
}

// NetworkOf returns the network access of the programs of a project's tasks.
func NetworkOf(p *project.Project) *Network {
	environ := p.Env.Environ()
	return &Network{
		Environ: environ, ConfigFile: filepath.Join(p.Env.UserDir(), "config.yaml"),
		Allow: func(ctx context.Context) ([]egress.Pattern, error) {
			remotes, err := remote.URLs(ctx, p.Repo)
			if err != nil {
				return nil, err
			}
			files, err := diff.FilesIn(ctx, p.Repo, "HEAD")
			if err != nil {
				return nil, err
			}
			list := egress.Defaults(egress.Input{
				Endpoints: endpoints(p.Env.Getenv), Remotes: remotes, Files: files,
				Environ: environ, Settings: egress.ReadSettings(p.Env.Getenv("HOME"), environ),
			})
			for _, text := range p.Config.Sandbox.Network.Hosts() {
				pattern, err := egress.ParsePattern(text)
				if err != nil {
					return nil, err
				}
				list = append(list, pattern)
			}
			return slices.Clip(list), nil
		},
	}
}
