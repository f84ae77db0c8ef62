package tmpl

import "encoding/json"

// Output is a text with parts: {{.v}} is the text, for functions too, and
// {{.v.outputs.url}} is one of the parts. Only such a path reaches a part: a variable
// and with get the text.
type Output struct {
	Text  string
	Parts map[string]any
}

// JSON returns a value as templates print a map. A value that JSON cannot encode is
// empty.
func JSON(v any) string {
	text, _ := asJSON(v)
	return text
}

// String returns the text.
func (o Output) String() string { return o.Text }

// MarshalJSON writes the text.
func (o Output) MarshalJSON() ([]byte, error) { return json.Marshal(o.Text) }

// text returns a value as functions and range see it.
func text(v any) any {
	if o, ok := v.(Output); ok {
		return o.Text
	}
	return v
}
