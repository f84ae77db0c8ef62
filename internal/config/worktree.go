package config

import "time"

// Worktree is how the worktree of a task is prepared and removed.
type Worktree struct {
	Base            string        `yaml:"base" oneof:"target|remote" about:"where a task starts: at the branch that it lands on, or at the upstream of that branch, which is fetched before"`
	Setup           []string      `yaml:"setup" about:"shell commands that run in a new worktree before the first step, in order"`
	SetupTimeout    time.Duration `yaml:"setup_timeout" about:"time for all commands of setup together"`
	Teardown        []string      `yaml:"teardown" about:"shell commands that run in a worktree before coven removes it, in order"`
	TeardownTimeout time.Duration `yaml:"teardown_timeout" about:"time for all commands of teardown together"`
	PoolGB          int           `yaml:"pool_gb" about:"disk space, in GB, for the files of landed worktrees, from which later ones are made; 0: none"`
	Keep            []string      `yaml:"keep" about:"ignored files that pass from a landed worktree to a later one: globs, such as node_modules or **/target"`
}
