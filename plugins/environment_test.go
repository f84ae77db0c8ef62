package plugins

import (
	"slices"
	"testing"
)

// Only coven's own plugins get credentials, because a third-party plugin may have the same name.
func TestEnvironment(t *testing.T) {
	h := NewHost(HostOptions{
		Env:         func() []string { return []string{"LANG=C"} },
		Credentials: func(n Need) []string { return []string{"KEY=" + n.Name} },
	})
	need := Need{KindModel, "openai"}
	if got := h.environment(need, Binary{BuiltIn: true}); !slices.Equal(got, []string{"LANG=C", "KEY=openai"}) {
		t.Error(got)
	}
	if got := h.environment(need, Binary{}); !slices.Equal(got, []string{"LANG=C"}) {
		t.Error(got)
	}
	if got := NewHost(HostOptions{}).environment(need, Binary{BuiltIn: true}); got != nil {
		t.Error(got)
	}
}
