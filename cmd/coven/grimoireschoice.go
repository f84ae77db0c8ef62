package main

import (
	"strings"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/config"
	"github.com/coven-run/coven/internal/task"
)

// grimoireLabel is the label that chooses a task's grimoire: grimoire:NAME.
const grimoireLabel = "grimoire:"

// grimoireOf chooses the grimoire of a new session of a task. flag is what the
// command line says.
func (h *house) grimoireOf(t task.Task, flag string) (grimoires.Choice, error) {
	if flag != "" {
		return grimoires.Choice{Grimoire: flag, Why: "--grimoire"}, nil
	}
	for _, label := range t.Labels {
		if name, ok := strings.CutPrefix(label, grimoireLabel); ok {
			return grimoires.Choice{Grimoire: name, Why: "the label " + label}, nil
		}
	}
	matchers, err := h.library.Matchers()
	if err != nil {
		return grimoires.Choice{}, err
	}
	if found, ok := matchers.Choose(planTask(t)); ok {
		return found, nil
	}
	why := "the default"
	if h.config.Grimoire != config.Default().Grimoire {
		why = "grimoire of the configuration"
	}
	return grimoires.Choice{Grimoire: h.config.Grimoire, Why: why}, nil
}
