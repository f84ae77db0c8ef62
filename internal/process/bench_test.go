package process

import (
	"io"
	"os/exec"
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
	secret := b.TempDir()
	for name, boundary := range map[string]*Boundary{"": nil, "/bounded": {Write: []string{b.TempDir()}, Hide: []string{secret}}} {
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
