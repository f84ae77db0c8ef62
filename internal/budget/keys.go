package budget

import "github.com/coven-run/coven/internal/config/yamldoc"

// Check records errors in the document for parts of the budget at a place that are set but not
// greater than 0.
func (a Amount) Check(doc *yamldoc.Document, at yamldoc.Place) {
	for _, part := range []struct {
		key string
		ok  bool
	}{
		{"usd", a.USD > 0}, {"tokens", a.Tokens > 0}, {"turns", a.Turns > 0},
	} {
		if given := doc.Key(at, part.key); given.Set() && !part.ok {
			doc.Fail(given, "a budget must be more than 0", "leave it out for none")
		}
	}
}
