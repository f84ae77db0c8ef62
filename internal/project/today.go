package project

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"time"

	"github.com/coven-run/coven/internal/config"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/text/shellword"
)

// WhyDay explains a session that waits because the budget of a day was spent, with the next command and others.
func (p *Project) WhyDay(ctx context.Context, v session.View) (reason, next string, or []string, err error) {
	day, err := p.Ledger.Today()
	next = "coven resume " + shellword.Word(v.Task)
	if day.Spent() == "" {
		return "there is budget again for today", next, nil, err
	}
	reason = day.Spent() + ", until " + day.Ends.Format(time.DateTime)
	return reason, next + " --budget " + day.Limit.SuggestMore(day.Used), []string{p.RaiseToday(ctx)}, err
}

// WhyReady explains a ready task, with the next command.
func (p *Project) WhyReady(ctx context.Context, id string) (reason, next string, err error) {
	day, err := p.Ledger.Today()
	if text := day.Spent(); text != "" {
		return "ready to run, but " + text, p.RaiseToday(ctx), err
	}
	return "ready to run", "coven run " + shellword.Word(id), err
}

// RaiseToday returns the command that raises the budget for each day above the usage of today.
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
