package plugins

import (
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coven-run/coven/plugins/pluginerr"
)

func TestHandshake(t *testing.T) {
	dir := t.TempDir()
	socket := filepath.Join(dir, "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	for line, want := range map[string]error{
		"1|1|unix|" + socket + "|grpc":                  nil,
		"1|2|unix|" + socket + "|grpc|\r":               nil,
		"  1|1|unix|" + socket + "|grpc|CERT|true|more": nil,
		"":                                                     pluginerr.ErrInvalid,
		"Listening on port 8080":                               pluginerr.ErrInvalid,
		"one|1|unix|" + socket + "|grpc":                       pluginerr.ErrInvalid,
		"1||unix|" + socket + "|grpc":                          pluginerr.ErrInvalid,
		"0|1|unix|" + socket + "|grpc":                         pluginerr.ErrUnsupported,
		"1|0|unix|" + socket + "|grpc":                         pluginerr.ErrUnsupported,
		"1|3|unix|" + socket + "|grpc":                         pluginerr.ErrUnsupported,
		"1|1|unix|" + socket:                                   pluginerr.ErrUnsupported,
		"1|1|unix|" + socket + "|netrpc":                       pluginerr.ErrUnsupported,
		"1|1|tcp|127.0.0.1:80|grpc":                            pluginerr.ErrInvalid,
		"1|1|unix||grpc":                                       pluginerr.ErrInvalid,
		"1|1|unix|s|grpc":                                      pluginerr.ErrInvalid,
		"1|1|unix|" + dir + "|grpc":                            pluginerr.ErrInvalid,
		"1|1|unix|" + dir + "/../s|grpc":                       pluginerr.ErrInvalid,
		"1|1|unix|" + dir + "//s|grpc":                         pluginerr.ErrInvalid,
		"1|1|unix|" + filepath.Join(dir, "sub", "s") + "|grpc": pluginerr.ErrInvalid,
		"1|1|unix|@" + socket + "|grpc":                        pluginerr.ErrInvalid,
	} {
		if err := checkHandshake(line, []int{1, 2}, dir); !errors.Is(err, want) {
			t.Errorf("%q: %v", line, err)
		}
	}
	if err := checkHandshake("1|1|unix|"+filepath.Join(dir, "none")+"|grpc", []int{1}, dir); err == nil {
		t.Error("a socket that is not there is taken")
	}
}

func TestTail(t *testing.T) {
	kept := &tail{}
	if got := kept.quote(); got != "; no output" {
		t.Errorf("%q", got)
	}
	for range 1000 {
		for _, block := range []string{"", "x", strings.Repeat("long ", 5000), "\n"} {
			if n, err := kept.Write([]byte(block)); n != len(block) || err != nil {
				t.Fatal(n, err)
			}
		}
		if cap(kept.kept) > 8*maxTail {
			t.Fatalf("%d bytes are kept", cap(kept.kept))
		}
	}
	_, _ = kept.Write([]byte("panic: \"all\"\r\n\n\tat \x1b[2Jmain\xff\n"))
	got := kept.quote()
	if !strings.HasPrefix(got, "; last output:\n    ...") || len(got) > maxTail+1000 {
		t.Errorf("%q", got)
	}
	if want := "\n    panic: \"all\"\n    \n        at \\x1b[2Jmain\\xff"; !strings.HasSuffix(got, want) {
		t.Errorf("%q", got[len(got)-200:])
	}
}
