package github

import (
	"errors"
	"testing"

	"github.com/vektah/gqlparser/v2"
	queryrules "github.com/vektah/gqlparser/v2/validator/rules"

	"github.com/coven-run/coven/internal/fake/fakeforge"
)

// The queries are valid in GitHub's public schema.
func TestQueries(t *testing.T) {
	schema, err := fakeforge.PublicSchema()
	if errors.Is(err, fakeforge.ErrNoSchema) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, query := range map[string]string{
		"light": lightQuery([]int{1, 2}), "full": fullQuery, "merge": mergeQuery, "enqueue": enqueueMutation, "reply": replyMutation,
	} {
		if _, err := gqlparser.LoadQueryWithRules(schema, query, queryrules.NewDefaultRules()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
