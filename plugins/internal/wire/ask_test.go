package wire

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"

	"google.golang.org/grpc"

	pluginv1 "github.com/coven-run/coven/plugins/internal/proto/coven/plugin/v1"
	"github.com/coven-run/coven/plugins/pluginerr"
	"github.com/coven-run/coven/plugins/provider"
)

// mute is a provider whose CLI makes no requests.
type mute struct{}

func (mute) Command(context.Context, provider.Request) (provider.Command, error) {
	return provider.Command{Server: true}, nil
}
func (mute) Parse(context.Context, []byte) ([]provider.Event, error)   { return nil, nil }
func (mute) Message(context.Context, provider.Message) ([]byte, error) { return nil, nil }

// answering is a provider whose CLI makes requests.
type answering struct {
	mute
	got provider.Answer
}

func (a *answering) Answer(_ context.Context, answer provider.Answer) (provider.Reply, error) {
	a.got = answer
	return provider.Reply{Input: []byte("yes"), Cancel: []byte("stop")}, nil
}

// The answer and the reply arrive unchanged. Older plugins and plugins without the method return
// pluginerr.ErrUnsupported.
func TestAnswer(t *testing.T) {
	impl := &answering{}
	sent := provider.Answer{
		Request: provider.Request{
			Conversation: "c", Resume: true, Prompt: "p", System: "s", Model: "m", Tools: []string{"fs_read"}, Dir: "/w", FilesDir: "/f", StateDir: "/s", TempDir: "/t",
			Gate: provider.Server{Name: "coven", Argv: []string{"coven"}, Env: []string{"A=b"}}, GateTool: "approve",
		},
		Asked:   provider.Asked{ID: "1", Action: provider.UseTerminal{ID: "t", Do: provider.TerminalOutput}, Data: []byte("x")},
		Allowed: true, Reason: "r", NotFound: true, Cancelled: true, Text: "out",
		Terminal: provider.Terminal{ID: "t", Truncated: true, Exited: true, Code: 3, Signal: "KILL"},
	}
	client := Provider(connected(t, func(s *grpc.Server) { RegisterProvider(s, impl) }))
	reply, err := client.(provider.Answerer).Answer(t.Context(), sent)
	if err != nil || string(reply.Input) != "yes" || string(reply.Cancel) != "stop" {
		t.Errorf("%+v, %v", reply, err)
	}
	if !reflect.DeepEqual(impl.got, sent) {
		t.Errorf("got  %+v\nsent %+v", impl.got, sent)
	}
	if command, err := client.Command(t.Context(), sent.Request); err != nil || !command.Server {
		t.Errorf("%+v, %v", command, err)
	}
	for name, register := range map[string]func(*grpc.Server){
		"a plugin without the method": func(s *grpc.Server) { RegisterProvider(s, mute{}) },
		"a plugin from before it": func(s *grpc.Server) {
			older := pluginv1.Provider_ServiceDesc
			older.Methods = slices.DeleteFunc(slices.Clone(older.Methods), func(m grpc.MethodDesc) bool { return m.MethodName == "Answer" })
			s.RegisterService(&older, pluginv1.UnimplementedProviderServer{})
		},
	} {
		if _, err := Provider(connected(t, register)).(provider.Answerer).Answer(t.Context(), sent); !errors.Is(err, pluginerr.ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
