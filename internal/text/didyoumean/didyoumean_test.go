package didyoumean

import "testing"

func TestNearest(t *testing.T) {
	permissions := []string{"FilesystemRead", "FilesystemWrite", "SemanticSearch", "DatabaseRead", "DatabaseWrite", "NetworkAccess"}
	keys := []string{"name", "type", "when", "timeout", "on_fail", "on_success", "command", "max_iterations"}
	for _, c := range []struct {
		word  string
		known []string
		want  string
	}{
		{"WriteDatabase", permissions, "DatabaseWrite"},
		{"write-database", permissions, "DatabaseWrite"},
		{"databasewrite", permissions, "DatabaseWrite"},
		{"NetworkAcess", permissions, "NetworkAccess"},
		{"Teleport", permissions, ""},
		{"sonet", []string{"haiku", "sonnet", "opus"}, "sonnet"},
		{"timout", keys, "timeout"},
		{"tiemout", keys, "timeout"},
		{"fail_on", keys, "on_fail"},
		{"onFail", keys, "on_fail"},
		{"iterations_max", keys, "max_iterations"},
		{"NAME", keys, "name"},
		{"name", keys, ""}, // known: no suggestion
		{"", keys, ""},
		{"x", keys, ""},
		{"x", []string{"y"}, ""},
		{"été", []string{"ete", "étés"}, "étés"},
		{"a", nil, ""},
	} {
		got, ok := Nearest(c.word, c.known)
		if got != c.want || ok != (c.want != "") {
			t.Errorf("%q: got %q, %v; want %q", c.word, got, ok, c.want)
		}
	}
}

func TestHint(t *testing.T) {
	if got := Hint("sonet", []string{"sonnet"}); got != `did you mean "sonnet"?` {
		t.Errorf("got %s", got)
	}
	if got := "x" + Aside("sonet", []string{"sonnet"}) + Aside("zzz", nil); got != `x (did you mean "sonnet"?)` {
		t.Errorf("got %s", got)
	}
	if got := Hint("zzz", []string{"sonnet"}); got != "" {
		t.Errorf("got %s", got)
	}
}
