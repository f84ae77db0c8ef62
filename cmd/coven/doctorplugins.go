package main

import (
	"context"
	"strings"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/registry"
)

// plugins is the doctor's look at plugins.
func (v *visit) plugins(context.Context) []finding {
	r, err := v.house.registry()
	if err != nil {
		return bad(exit.Next(err), "%v", err)
	}
	all, err := r.List()
	if err != nil {
		return bad(exit.Next(err), "%v", err)
	}
	var asked, wrong []string
	count := 0
	for _, p := range all {
		switch {
		case p.State == registry.Untrusted, p.State == registry.Changed:
			asked = append(asked, p.ID()+" ("+string(p.State)+")")
		case unfit(p):
			wrong = append(wrong, p.ID()+" ("+string(p.State)+")")
		case p.Runs():
			count++
		}
	}
	switch {
	case len(wrong) > 0:
		return bad("coven plugins verify", "may not run: %s", strings.Join(append(wrong, asked...), ", "))
	case len(asked) > 0:
		return odd("coven trust", "do not run until you trust them: %s", strings.Join(asked, ", "))
	}
	return good("%d, all may run", count)
}
