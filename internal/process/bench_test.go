package process

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// BenchmarkStart compares a contained /bin/true, with and without a Boundary, with a bare one, from Start to
// Wait. Run it without -race.
func BenchmarkStart(b *testing.B) {
	b.Run("bare", func(b *testing.B) {
		for b.Loop() {
			if err := exec.Command("/bin/true").Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
	secret, home := b.TempDir(), b.TempDir()
	for i := range 100 {
		dir := filepath.Join(home, fmt.Sprint(".tool", i))
		if err := os.Mkdir(dir, 0o700); err != nil {
			b.Fatal(err)
		}
	}
	for name, boundary := range map[string]*Boundary{
		"": nil, "/bounded": {Write: []string{b.TempDir()}, Hide: []string{secret}},
		"/home":    {Write: []string{b.TempDir()}, Hide: []string{filepath.Join(home, ".ssh")}}, // a home directory of 100 entries
		"/partial": {Write: []string{b.TempDir()}, Hide: []string{secret}, Partial: map[string][]string{home: {filepath.Join(home, ".tool1"), filepath.Join(home, ".tool2")}}},
	} {
		for _, containment := range []Containment{PIDNamespace, Subreaper} {
			b.Run(containment.String()+name, func(b *testing.B) {
				l := launcher(b, containment)
				for b.Loop() {
					exit, _, err := l.Run(b.Context(), Spec{Argv: []string{"/bin/true"}, Boundary: boundary})
					if err != nil || !exit.OK() {
						b.Fatal(exit, err)
					}
				}
			})
		}
	}
}

// BenchmarkOutput measures the throughput of the terminal.
func BenchmarkOutput(b *testing.B) {
	child, err := launcher(b, 0).Start(b.Context(), Spec{Argv: []string{"/usr/bin/yes"}})
	if err != nil {
		b.Fatal(err)
	}
	chunk := make([]byte, 32<<10)
	b.SetBytes(int64(len(chunk)))
	for b.Loop() {
		if _, err := io.ReadFull(child.Output(), chunk); err != nil {
			b.Fatal(err)
		}
	}
	if err := child.Close(); err != nil {
		b.Fatal(err)
	}
}
