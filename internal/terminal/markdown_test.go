package terminal

import "testing"

func TestMarkdown(t *testing.T) {
	for text, want := range map[string]string{
		"plain *text* a_b":                    "plain *text* a_b",
		"## Title ##":                         bold + "Title" + noBold,
		"#tag":                                "#tag",
		"- one\n  * two":                      "• one\n  • two",
		"a **b** and __c__":                   "a " + bold + "b" + noBold + " and " + bold + "c" + noBold,
		"run `go **test**` now":               "run " + cyan + "go **test**" + noColor + " now",
		"a ` alone":                           "a ` alone",
		"```go\nfunc f() { **x** }\n```\n- x": "    " + cyan + "func f() { **x** }" + noColor + "\n• x",
		"~~~\n```\n~~~":                       "    " + cyan + "```" + noColor,
		"````\n```\n````\nend":                "    " + cyan + "```" + noColor + "\nend",
		"```\nopen":                           "    " + cyan + "open" + noColor,
	} {
		if got := Markdown(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}
