package fakeforge

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"
)

// SchemaVariable names a file with GitHub's public GraphQL schema, such as schema.graphql of the repository
// octokit/graphql-schema. Tests that need it are skipped without it: it has more than a megabyte.
const SchemaVariable = "COVEN_GITHUB_SCHEMA"

// ErrNoSchema means that SchemaVariable is not set.
var ErrNoSchema = errors.New(SchemaVariable + " names no file with GitHub's public schema")

// PublicSchema reads the file of SchemaVariable. The published file defines some fields twice: the first counts.
func PublicSchema() (*ast.Schema, error) {
	file := os.Getenv(SchemaVariable)
	if file == "" {
		return nil, ErrNoSchema
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read GitHub's schema: %w", err)
	}
	document, err := parser.ParseSchemas(validator.Prelude, &ast.Source{Name: file, Input: string(text)})
	if err != nil {
		return nil, fmt.Errorf("read GitHub's schema: %w", err)
	}
	for _, definition := range document.Definitions {
		seen := map[string]bool{}
		definition.Fields = slices.DeleteFunc(definition.Fields, func(f *ast.FieldDefinition) bool {
			again := seen[f.Name]
			seen[f.Name] = true
			return again
		})
	}
	whole, err := validator.ValidateSchemaDocument(document)
	if err != nil {
		return nil, fmt.Errorf("read GitHub's schema: %w", err)
	}
	return whole, nil
}
