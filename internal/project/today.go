package project

import (
	"context"
	"fmt"
	"math"
	"path/filepath"

	"github.com/coven-run/coven/internal/config"
)

// RaiseToday returns the command that raises the budget for each day above what was used today.
func (p *Project) RaiseToday(ctx context.Context) string {
	day, err := p.Ledger.Today()
	if err != nil {
		return "coven config explain budget_per_day.usd"
	}
	key, value := "budget_per_day.usd", fmt.Sprintf("%.0f", math.Ceil(day.Used.USD+day.Limit.USD))
	if day.Limit.USD == 0 || day.Used.USD < day.Limit.USD {
		key, value = "budget_per_day.tokens", fmt.Sprint(day.Used.Tokens+day.Limit.Tokens)
	}
	command := "coven config set "
	if p.isOwn(ctx, key) {
		command += "--user "
	}
	return command + key + " " + value
}

// isOwn reports whether the value of a setting comes from the user's own file.
func (p *Project) isOwn(ctx context.Context, key string) bool {
	files, err := p.Env.SettingsFiles(ctx)
	if err != nil {
		return false
	}
	all, err := files.Settings()
	if err != nil {
		return false
	}
	s, err := config.Find(all, key)
	return err == nil && filepath.IsAbs(s.From) // the project's file is named by a relative path
}
