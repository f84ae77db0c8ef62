package launch

import (
	"encoding/json"
	"strings"
	"testing"
)

// A question about a call of an MCP tool shows its arguments. A long text is cut.
func TestQuestionShowsArguments(t *testing.T) {
	for input, want := range map[string]string{
		`{"to":"all","body":{"text":"hi"}}`: "{\n  \"to\": \"all\",\n  \"body\": {\n    \"text\": \"hi\"\n  }\n}",
		`{}`:                                "",
		`{"text":"` + strings.Repeat("x", 40<<10) + `"}`: "(the rest is not shown)\n",
	} {
		if got := arguments(json.RawMessage(input)); got != want && (len(want) == 0 || !strings.HasSuffix(got, want)) {
			t.Errorf("%.40s is shown as %q", input, got)
		}
	}
}
