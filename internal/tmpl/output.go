package tmpl

import "encoding/json"

// Output is a value that is a text and has parts: {{.v}} is the text, to every
// function too, and {{.v.outputs.url}} one of the parts. Parts can be reached by
// such a path only: a variable and with get the text.
type Output struct {
	Text  string
	Parts map[string]any
}

// JSON is a value as templates print a map. A value that JSON cannot have is empty.
func JSON(v any) string {
	text, _ := asJSON(v)
	return text
}

// String returns the text.
func (o Output) String() string { return o.Text }

// MarshalJSON writes the text.
func (o Output) MarshalJSON() ([]byte, error) { return json.Marshal(o.Text) }

// text is a value as functions and range see it.
func text(v any) any {
	if o, ok := v.(Output); ok {
		return o.Text
	}
	return v
}
