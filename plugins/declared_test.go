package plugins_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/coven-run/coven/plugins"
	"github.com/coven-run/coven/plugins/pluginerr"
	"github.com/coven-run/coven/plugins/provider"
)

// A command must match the declared capabilities of the program. This provider is gated, resumes
// conversations and accepts messages.
func TestDeclared(t *testing.T) {
	for _, test := range []struct {
		can                      provider.Capabilities
		command, resume, message error
	}{
		{nil, nil, nil, nil},
		{provider.Capabilities{provider.Gated, provider.Resume, provider.Messages}, nil, nil, nil},
		{provider.Capabilities{provider.Gated}, nil, pluginerr.ErrUnsupported, pluginerr.ErrUnsupported},
		{provider.Capabilities{provider.Gated, provider.Resume}, nil, nil, pluginerr.ErrUnsupported},
		{provider.Capabilities{}, pluginerr.ErrInvalid, pluginerr.ErrUnsupported, pluginerr.ErrUnsupported},
		{provider.Capabilities{provider.Resume, provider.Messages}, pluginerr.ErrInvalid, pluginerr.ErrInvalid, nil},
	} {
		t.Run(test.can.String(), func(t *testing.T) {
			t.Parallel()
			c := newCage(t)
			c.can = test.can
			p, err := c.host.Provider(t.Context(), "claude")
			must(t, err)
			request := provider.Request{Conversation: "0b8f9c52-6b0e-4a53-9d6e-0a4c5f0f6f11", Prompt: "x", Tools: []string{provider.ToolRead, provider.ToolBash}, FilesDir: "/nowhere", Gate: provider.Server{Name: "coven", Argv: []string{"coven", "gate"}}, GateTool: "approve"}
			_, err = p.Command(t.Context(), request)
			if !errors.Is(err, test.command) || err != nil && !strings.Contains(err.Error(), "it is gated, but the plugin declares coven:capabilities(") {
				t.Errorf("a command: %v, want %v", err, test.command)
			}
			request.Resume = true
			if _, err = p.Command(t.Context(), request); !errors.Is(err, test.resume) {
				t.Errorf("a command that resumes: %v, want %v", err, test.resume)
			}
			if _, err := p.Message(t.Context(), provider.Message{ID: request.Conversation, Text: "x"}); !errors.Is(err, test.message) {
				t.Errorf("a message: %v, want %v", err, test.message)
			}
		})
	}
}

func TestContradiction(t *testing.T) {
	t.Parallel()
	reads := provider.Request{Tools: []string{provider.ToolRead}}
	writes := provider.Request{Tools: []string{provider.ToolRead, provider.ToolWrite}}
	gated, free := provider.Command{Gated: true}, provider.Command{}
	readOnly := provider.Command{ReadOnly: true}
	for _, test := range []struct {
		can     provider.Capabilities
		request provider.Request
		command provider.Command
		want    string
	}{
		{provider.Capabilities{}, writes, free, ""},
		{provider.Capabilities{}, writes, gated, "is gated"},
		{provider.Capabilities{provider.Gated}, writes, gated, ""},
		{provider.Capabilities{provider.Gated}, reads, free, "is not gated"},
		{provider.Capabilities{}, reads, readOnly, "is read-only"},
		{provider.Capabilities{provider.ReadOnly}, reads, readOnly, ""},
		{provider.Capabilities{provider.ReadOnly}, reads, free, "is not read-only"},
		{provider.Capabilities{provider.ReadOnly}, writes, free, ""},
	} {
		got := plugins.Contradiction(test.can, test.request, test.command)
		if (got == "") != (test.want == "") || !strings.HasSuffix(got, test.want) {
			t.Errorf("%v, %v, %+v: %q, want %q", test.can, test.request.Tools, test.command, got, test.want)
		}
	}
}
