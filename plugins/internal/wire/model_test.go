package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"reflect"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	pluginv1 "github.com/coven-run/coven/plugins/internal/proto/coven/plugin/v1"
	"github.com/coven-run/coven/plugins/model"
	"github.com/coven-run/coven/plugins/pluginerr"
)

// silent is a model whose turns fail.
type silent struct{ err error }

func (s silent) Turn(context.Context, model.Request, func(model.Event) error) error { return s.err }

// listing is a model.Lister.
type listing struct {
	silent
	models []model.Info
}

func (l listing) Models(context.Context) ([]model.Info, error) { return l.models, l.err }

// dialed returns a client for the service that register registers.
func dialed(t *testing.T, register func(*grpc.Server)) model.Model {
	t.Helper()
	return Model(connected(t, register))
}

// connected returns a connection to the service that register registers.
func connected(t *testing.T, register func(*grpc.Server)) *grpc.ClientConn {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	register(server)
	go func() { _ = server.Serve(listener) }() // returns after Stop
	t.Cleanup(server.Stop)
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func TestModels(t *testing.T) {
	want := []model.Info{
		{ID: "a", Window: 1_000_000, MaxOutput: 128_000, Prices: &model.Prices{Input: 2, Output: 10, CacheRead: 0.1, CacheWrite: 2.5}},
		{ID: "b", Prices: &model.Prices{}},
		{ID: "c"},
	}
	m := dialed(t, func(s *grpc.Server) { RegisterModel(s, listing{models: want}) })
	if got, err := m.(model.Lister).Models(t.Context()); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v %v", got, err)
	}
	for name, register := range map[string]func(*grpc.Server){
		"a plugin without the method": func(s *grpc.Server) { RegisterModel(s, silent{}) },
		"a plugin from before it":     func(s *grpc.Server) { s.RegisterService(before(), pluginv1.UnimplementedModelServer{}) },
	} {
		if _, err := dialed(t, register).(model.Lister).Models(t.Context()); !errors.Is(err, pluginerr.ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// before describes the service of an older plugin, without Models.
func before() *grpc.ServiceDesc {
	desc := pluginv1.Model_ServiceDesc
	desc.Methods = nil
	return &desc
}

// The sentinel and the text of an error arrive.
func TestTurnErrors(t *testing.T) {
	for _, sentinel := range []error{pluginerr.ErrTransient, pluginerr.ErrLogin, pluginerr.ErrInvalid} {
		m := dialed(t, func(s *grpc.Server) { RegisterModel(s, silent{fmt.Errorf("no: %w", sentinel)}) })
		err := m.Turn(t.Context(), model.Request{}, func(model.Event) error { return nil })
		if !errors.Is(err, sentinel) || err.Error() != "no: "+sentinel.Error() {
			t.Errorf("%v arrives as %v", sentinel, err)
		}
	}
}
