package main

import (
	"runtime/debug"
	"testing"
)

// Only the version of a release that go install built overrides the version of the source code.
func TestVersionOf(t *testing.T) {
	for of, want := range map[string]string{
		"v0.1.1": "v0.1.1", "v1.0.0-rc.1": "v1.0.0-rc.1", "": version, "(devel)": version,
		"v0.0.0-20261126110000-62c2e0643dd3":        version,
		"v0.1.1-0.20261126110000-62c2e0643dd3":      version,
		"v1.0.0-rc.1.0.20261126110000-62c2e0643dd3": version,
		"v0.1.0+dirty": version,
	} {
		info := &debug.BuildInfo{Main: debug.Module{Version: of}}
		if got := versionOf(info, true); got != want {
			t.Errorf("%q: %s, want %s", of, got, want)
		}
	}
	if got := versionOf(nil, false); got != version {
		t.Error(got)
	}
}
