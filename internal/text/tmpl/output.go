package tmpl

import "encoding/json"

// Output is a text with parts. {{.v}} is the text, even in function calls, and
// {{.v.outputs.url}} is a part. Parts are only accessible by such a path: variables
// and with contain the text.
type Output struct {
	Text  string
	Parts map[string]any
}

// JSON formats a value like templates format a map. It returns "" for a value that cannot be
// encoded.
func JSON(v any) string {
	text, _ := asJSON(v)
	return text
}

// String returns the text.
func (o Output) String() string { return o.Text }

// MarshalJSON encodes the text.
func (o Output) MarshalJSON() ([]byte, error) { return json.Marshal(o.Text) }

// text converts a value for functions and range.
func text(v any) any {
	if o, ok := v.(Output); ok {
		return o.Text
	}
	return v
}
