package provider_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/coven-run/coven/plugins/provider"
)

// declaration returns a declaration that the source of this test does not contain.
func declaration(words string) string { return provider.Capabilities(nil).String()[:19] + words + ")" }

func TestDeclaration(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		program string
		want    provider.Capabilities // nil for no declaration
		wrong   string
	}{
		{"", nil, ""},
		{"#!/bin/sh\necho resume\n", nil, ""},
		{"# " + declaration("") + "\n", provider.Capabilities{}, ""},
		{"# " + declaration("resume"), provider.Capabilities{provider.Resume}, ""},
		{"\x00" + declaration("gated,resume, messages,read-only") + "\x00", provider.AllCapabilities(), ""},
		{declaration("resume,resume"), provider.Capabilities{provider.Resume}, ""},
		{declaration("resume") + strings.Repeat("x", 1<<20) + declaration("resume"), provider.Capabilities{provider.Resume}, ""},
		{declaration("resume") + declaration("gated"), nil, "conflicting capabilities, (resume) and (gated)"},
		{declaration("resume,fly"), nil, `unknown capability "fly"`},
		{declaration("resume,"), nil, `unknown capability ""`},
		{strings.TrimSuffix(declaration("resume"), ")"), nil, ""},
		{declaration(strings.Repeat("resume,", 50) + "gated"), nil, ""},
		{declaration("gated")[:12] + declaration("resume"), provider.Capabilities{provider.Resume}, ""},
	} {
		for _, size := range []int{1, 2, 3, 7, 64, 127, 128, 129, 4096, 1 << 21} {
			if size < 64 && len(test.program) > 4096 {
				continue
			}
			var d provider.Declaration
			for part := range slices.Chunk([]byte(test.program), size) {
				if n, err := d.Write(part); n != len(part) || err != nil {
					t.Fatal(n, err)
				}
			}
			got, err := d.Capabilities()
			if (got == nil) != (test.want == nil) || !slices.Equal(got, test.want) {
				t.Errorf("%.80q in parts of %d bytes: %v, want %v", test.program, size, got, test.want)
			}
			if (err == nil) != (test.wrong == "") || err != nil && !strings.Contains(err.Error(), test.wrong) {
				t.Errorf("%.80q in parts of %d bytes: %v, want %q", test.program, size, err, test.wrong)
			}
		}
	}
}

// A program that contains this package does not declare anything because of it.
func TestPackageDeclaresNothing(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	var d provider.Declaration
	_, _ = d.Write(program)
	if c, err := d.Capabilities(); c != nil || err != nil {
		t.Errorf("this program declares %v, %v", c, err)
	}
}

func TestDeclare(t *testing.T) {
	t.Parallel()
	if c := provider.Declare(declaration("resume")); !slices.Equal(c, provider.Capabilities{provider.Resume}) {
		t.Error(c)
	}
	for _, text := range []string{"", "resume", declaration("fly")} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%q was accepted", text)
				}
			}()
			provider.Declare(text)
		}()
	}
}

func TestCannot(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		has  provider.Capabilities
		want []provider.Capability
	}{
		{provider.Capabilities{}, provider.AllCapabilities()},
		{provider.Capabilities{provider.Gated}, []provider.Capability{provider.Resume, provider.Messages}},
		{provider.Capabilities{provider.ReadOnly}, []provider.Capability{provider.Gated, provider.Resume, provider.Messages}},
	} {
		if got := test.has.Cannot(); !slices.Equal(got, test.want) {
			t.Errorf("%v: %v, want %v", test.has, got, test.want)
		}
	}
}
