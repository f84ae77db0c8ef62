package plugintest

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coven-run/coven/plugins"
	"github.com/coven-run/coven/plugins/provider"
)

// The suite passes correct plugins. It fails each wrong plugin in exactly the cases about its defect.
func TestSuite(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		kind   plugins.Kind
		manner string
		fails  []string
	}{
		{"reviewer", "good", nil},
		{"reviewer", "chatty", nil},
		{"reviewer", "no hint", []string{"cookie", "handshake", "ready"}},
		{"reviewer", "no cookie", []string{"cookie", "shutdown", "ready"}},
		{"reviewer", "chatter", []string{"handshake", "ready"}},
		{"reviewer", "elsewhere", []string{"handshake", "ready"}},
		{"reviewer", "insecure", []string{"handshake", "ready"}},
		{"reviewer", "boast", []string{"version", "shutdown", "ready"}},
		{"reviewer", "any client", []string{"tls", "shutdown", "ready"}},
		{"reviewer", "unhealthy", []string{"tls", "health", "shutdown", "ready"}},
		{"reviewer", "stays", []string{"shutdown", "ready"}},
		{"reviewer", "orphan", []string{"shutdown"}},
		{"reviewer", "writes", []string{"read only"}},
		{"reviewer", "deletes", []string{"read only"}},
		{"reviewer", "maybe", []string{"ready"}},
		{"reviewer", "away", []string{"ready"}},
		{"reviewer", "deaf", nil}, // its requests to coven end without it, and its other work is not visible
		{"reviewer", "serial", []string{"two at once"}},
		{"reviewer", "leaky", []string{"many calls"}},
		{"reviewer", "strict", []string{"unknown option"}},
		{"reviewer", "fragile", []string{"cut diff"}},
		{"reviewer", "slow", []string{"ready"}},
		{"reviewer", "unhurried", nil},
		{"arbiter", "good", nil},
		{"arbiter", "first", []string{"ready"}},
		{"arbiter", "verbose", []string{"ready"}},
		{"provider", "good", nil},
		{"provider", "loud", []string{"prompt"}},
		{"provider", "mute", []string{"prompt"}},
		{"provider", "climber", []string{"files"}},
		{"provider", "nameless", []string{"command", "resume"}},
		{"provider", "forgetful", []string{"resume"}},
		{"provider", "picky", []string{"parse anything", "parse statelessly"}},
		{"provider", "counting", []string{"parse statelessly"}},
		{"provider", "nervous", []string{"parse anything"}},
		{"provider", "whole", []string{"parse statelessly"}},
		{"provider", "eager", []string{"parse nothing"}},
		{"provider", "silent", []string{"message"}},
		{"provider", "boastful", []string{"gate"}},
		{"provider", "gated", nil},
		{"provider", "answers", nil},
		{"provider", "ignores", []string{"answer"}},
		{"provider", "promising", []string{"capabilities"}},
		{"provider", "modest", nil},
		{"model", "good", nil},
		{"model", "no key", nil},
		{"model", "endless", []string{"ready"}},
		{"model", "odd", []string{"end"}},
		{"model", "plain", []string{"tools"}},
		{"forge", "good", nil},
		{"forge", "no key", nil},
		{"forge", "liar", []string{"ready"}},
		{"forge", "believer", []string{"broken host"}},
		{"forge", "vague", []string{"no login"}},
		{"forge", "gossip", []string{"credential"}},
		{"forge", "deaf", []string{"silent host"}},
		{"forge", "yes man", []string{"unknown IDs"}},
	} {
		t.Run(string(tc.kind)+" "+tc.manner, func(t *testing.T) {
			t.Parallel()
			o := Options{
				Args: []string{"serve", string(tc.kind), tc.manner}, Ready: time.Minute, Answer: time.Minute, End: time.Minute,
				Transcript: []byte("say hello\nsay more\n{}\n"),
			}
			switch tc.manner { // the suite waits for these until the timeout
			case "serial", "slow":
				o.Answer = 5 * time.Second
			case "no cookie":
				o.Ready, o.End = 10*time.Second, 5*time.Second
			case "promising":
				o.Capabilities = provider.Capabilities{provider.Gated, provider.Resume, provider.Messages}
			case "modest":
				o.Capabilities = provider.Capabilities{provider.Resume, provider.Messages}
			case "deaf", "orphan": // also the forge
				o.End = 5 * time.Second
			case "boast", "any client", "unhealthy", "stays":
				o.End = time.Second
			}
			var told []Result
			o.Report = func(r Result) { told = append(told, r) }
			results, err := Run(t.Context(), self, tc.kind, o)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(told, results) {
				t.Errorf("told of %d results, %d came back", len(told), len(results))
			}
			var failed []string
			text := ""
			for _, r := range results {
				if r.Status == Failed {
					failed = append(failed, r.Name)
				}
				if r.Status != Passed {
					text += string(r.Status) + ": " + r.Name + ": " + r.Detail + "\n"
				}
			}
			if !slices.Equal(failed, tc.fails) {
				t.Errorf("failed: %q, want %q", failed, tc.fails)
			}
			if OK(results) != (len(tc.fails) == 0) {
				t.Errorf("OK: %v", OK(results))
			}
			says := map[string]string{
				"slow":      "failed: ready: no answer within 5s: context deadline exceeded: the plugin sent no request to coven's services",
				"unhurried": "skipped: many calls: a call takes",
				"boastful":  "failed: gate: the command is gated but does not contain the",
			}[tc.manner]
			if !strings.Contains(text, says) {
				t.Errorf("it does not say %q", says)
			}
			t.Log(strings.TrimSpace(text))
		})
	}
}
