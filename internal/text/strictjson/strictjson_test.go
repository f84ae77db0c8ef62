package strictjson_test

import (
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/text/strictjson"
	"pgregory.net/rapid"
)

func TestObject(t *testing.T) {
	for text, want := range map[string]string{
		`{}`:                                  "",
		`{"a":1,"b":{"a":[{"a":1},{"a":2}]}}`: "",
		`{"a":"b","c":"a"}`:                   "",
		`{"a":{"x":1},"b":{"x":1}}`:           "",
		`{"a":[["a","a"],"a"],"A b":"a"}`:     "",

		`{"content":"x","content":"y"}`:    `"content" occurs twice`,
		`{"content":"x","content":"x"}`:    `"content" occurs twice`,
		`{"c":"x","\u0063":"y"}`:           `"c" occurs twice`,
		`{"content":"x","Content":"y"}`:    `"content" and "Content" differ only by case`,
		`{"edits":[1,{"k":[],"K":1}]}`:     `"k" and "K" differ only by case`,
		`{"env":{"a":{"b":1,"b":{}}}}`:     `"b" occurs twice`,
		`{"tasks":"x","ta\u017fks":1}`:     `"tasks" and "taſks" differ only by case`,
		`{"k":{},"b":[{}],"\u212a":[[1]]}`: "\"k\" and \"\u212a\" differ only by case",

		``:          "not a JSON object",
		`null`:      "not a JSON object",
		`[]`:        "not a JSON object",
		`"{}"`:      "not a JSON object",
		`{"a":1} {`: "not a JSON object",
		`{"a":1}{}`: "not a JSON object",
		`{"a":1`:    "not a JSON object",
	} {
		_, err := strictjson.Object([]byte(text))
		if got := ""; err != nil || want != "" {
			if err != nil {
				got = err.Error()
			}
			if got != want {
				t.Errorf("%s: %q, want %q", text, got, want)
			}
		}
	}
	object, err := strictjson.Object([]byte(`{"n":9007199254740993}`))
	if err != nil || object["n"].(interface{ String() string }).String() != "9007199254740993" {
		t.Errorf("a large number: %v, %v", object, err)
	}
}

// Two names fold to the same text if and only if strings.EqualFold finds them equal.
func TestFold(t *testing.T) {
	letters := rapid.StringOfN(rapid.SampledFrom([]rune("aAkK\u212asS\u017f_éÉßǅǆ")), 0, 3, -1)
	rapid.Check(t, func(t *rapid.T) {
		a, b := letters.Draw(t, "a"), letters.Draw(t, "b")
		if (strictjson.Fold(a) == strictjson.Fold(b)) != strings.EqualFold(a, b) {
			t.Errorf("%q and %q", a, b)
		}
	})
}
