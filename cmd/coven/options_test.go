package main

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/plugins/builtin/command"
	"github.com/coven-run/coven/plugins/hostservice"
	"github.com/coven-run/coven/plugins/reviewer"
)

type noServices struct{ hostservice.Services }

func (noServices) Log(context.Context, string) error { return nil }

// Grimoires may set exactly the options that the reviewer command accepts.
func TestCommandOptions(t *testing.T) {
	for with, ok := range map[string]bool{
		"command: 'true'":                              true,
		"command: 'true', format: lines":               true,
		`command: 'echo {\"runs\":[]}', format: sarif`: true,
		"command: 'true', severity: error":             true,
		"command: 'true', severity: warning":           true,
		"command: 'true', severity: info":              true,
		"command: 'true', scope: changed":              true,
		"command: 'true', scope: all":                  true,
		"command: 'true', format: xml":                 false,
		"command: 'true', severity: note":              false,
		"command: 'true', scope: some":                 false,
		"command: 'true', timeout: 3":                  false,
		"commnad: 'true'":                              false,
		"command: ' '":                                 false,
	} {
		text := fmt.Sprintf("name: g\nsteps: [{name: a, type: review, reviewers: [{plugin: command, with: {%s}}]}]\n", with)
		if _, err := grimoires.Parse("g.yaml", []byte(text)); (err == nil) != ok {
			t.Errorf("the grimoire: %s: %v", with, err)
		}
		options := map[string]string{}
		for option := range strings.SplitSeq(with, ", ") {
			key, value, _ := strings.Cut(option, ": ")
			options[key] = strings.Trim(value, "'")
		}
		if _, err := (command.Reviewer{}).Review(t.Context(), reviewer.Change{Dir: t.TempDir(), Options: options}, noServices{}); (err == nil) != ok {
			t.Errorf("the reviewer: %s: %v", with, err)
		}
	}
}
