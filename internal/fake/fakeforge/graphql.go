package fakeforge

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator"
	"github.com/vektah/gqlparser/v2/validator/rules"
)

//go:embed schema.graphql
var schemaText string

// schema returns the part of GitHub's schema that the fake supports.
var schema = sync.OnceValue(func() *ast.Schema {
	return gqlparser.MustLoadSchema(&ast.Source{Name: "schema.graphql", Input: schemaText})
})

// object is a value of a GraphQL type. Its fields are values, objects, lists of objects, or functions of the field's arguments that
// return one of these. __typename is its type, if the type of the field is an interface or a union.
type object map[string]any

// resolver is the value of a field that depends on its arguments.
type resolver func(arguments map[string]any) any

// problem is an error in an answer. As in GitHub's API, most come with the status 200.
type problem struct {
	Type    string `json:"type,omitempty"`
	Message string `json:"message"`
	Path    []any  `json:"path,omitempty"`
}

// missing is the value of a field that does not exist.
type missing struct{ what string }

// execution is the execution of a query.
type execution struct {
	variables map[string]any
	problems  []problem
}

// graphQL answers a query.
func (s *Server) graphQL(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Query     string         `json:"query"`
		Variables map[string]any `json:"variables"`
	}
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		refuse(w, http.StatusBadRequest, "Problems parsing JSON")
		return
	}
	document, errs := gqlparser.LoadQueryWithRules(schema(), request.Query, rules.NewDefaultRules())
	if errs != nil {
		reply(w, http.StatusOK, map[string]any{"errors": []problem{{Message: errs.Error(), Type: "undefinedField"}}})
		return
	}
	operation := document.Operations[0]
	variables, err := validator.VariableValues(schema(), operation, request.Variables)
	if err != nil {
		reply(w, http.StatusOK, map[string]any{"errors": []problem{{Message: err.Error(), Type: "argumentLiteralsIncompatible"}}})
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	cost := max(1, int(math.Round(float64(costOf(operation.SelectionSet, variables, 1))/100)))
	if !s.spend(cost) {
		s.limitHeader(w)
		reply(w, http.StatusOK, map[string]any{"errors": []problem{{Type: "RATE_LIMITED", Message: "API rate limit exceeded for user ID 1."}}})
		return
	}
	s.limitHeader(w)
	e := &execution{variables: variables}
	root := s.queryRoot(cost)
	if operation.Operation == ast.Mutation {
		root = s.mutationRoot()
	}
	answer := map[string]any{"data": e.object(operation.SelectionSet, root, nil)}
	if len(e.problems) > 0 {
		answer["errors"] = e.problems
	}
	reply(w, http.StatusOK, answer)
}

// costOf returns the number of requests that a selection takes: one for each list, for each element of the lists around it.
func costOf(selection ast.SelectionSet, variables map[string]any, times int) int {
	cost := 0
	for _, field := range fieldsOf(selection, variables, nil) {
		inner := times
		if arguments := field.ArgumentMap(variables); field.Definition.Arguments.ForName("first") != nil {
			cost += times
			for _, name := range []string{"first", "last"} {
				if n := number(arguments[name]); n > 0 {
					inner = times * n
				}
			}
		}
		cost += costOf(field.SelectionSet, variables, inner)
	}
	return cost
}

// fieldsOf returns the fields of a selection, with those of its fragments. If of is not nil, it leaves out fragments of
// other types.
func fieldsOf(selection ast.SelectionSet, variables map[string]any, of func(kind string) bool) []*ast.Field {
	var fields []*ast.Field
	for _, s := range selection {
		switch s := s.(type) {
		case *ast.Field:
			if included(s.Directives, variables) {
				fields = append(fields, s)
			}
		case *ast.InlineFragment:
			if included(s.Directives, variables) && (of == nil || of(s.TypeCondition)) {
				fields = append(fields, fieldsOf(s.SelectionSet, variables, of)...)
			}
		case *ast.FragmentSpread:
			if included(s.Directives, variables) && (of == nil || of(s.Definition.TypeCondition)) {
				fields = append(fields, fieldsOf(s.Definition.SelectionSet, variables, of)...)
			}
		}
	}
	return fields
}

func included(directives ast.DirectiveList, variables map[string]any) bool {
	for _, d := range directives {
		if on, _ := d.ArgumentMap(variables)["if"].(bool); d.Name == "include" && !on || d.Name == "skip" && on {
			return false
		}
	}
	return true
}

// object returns the selected fields of an object.
func (e *execution) object(selection ast.SelectionSet, o object, path []any) map[string]any {
	own, _ := o["__typename"].(string)
	of := func(kind string) bool {
		if kind == "" || own == "" || kind == own {
			return true
		}
		return slices.Contains(schema().Types[own].Interfaces, kind)
	}
	answer := map[string]any{}
	for _, field := range fieldsOf(selection, e.variables, of) {
		at := append(slices.Clone(path), field.Alias)
		value, known := o[field.Name]
		if !known && field.Name != "__typename" {
			e.problems = append(e.problems, problem{Type: "FAKE", Message: fmt.Sprintf("the fake has no value for %s of %s", field.Name, field.ObjectDefinition.Name), Path: at})
			continue
		}
		if f, depends := value.(resolver); depends {
			value = f(field.ArgumentMap(e.variables))
		}
		got := e.value(field, value, at)
		if before, ok := answer[field.Alias].(map[string]any); ok { // selected twice
			if more, ok := got.(map[string]any); ok {
				maps.Copy(before, more)
				continue
			}
		}
		answer[field.Alias] = got
	}
	return answer
}

// value returns the selected parts of a value.
func (e *execution) value(field *ast.Field, value any, path []any) any {
	switch value := value.(type) {
	case nil:
		return nil
	case missing:
		e.problems = append(e.problems, problem{Type: "NOT_FOUND", Message: "Could not resolve to a " + value.what, Path: path})
		return nil
	case problem:
		value.Path = path
		e.problems = append(e.problems, value)
		return nil
	case object:
		if value == nil {
			return nil
		}
		return e.object(field.SelectionSet, value, path)
	case []object:
		list := []any{}
		for i, one := range value {
			list = append(list, e.object(field.SelectionSet, one, append(slices.Clone(path), i)))
		}
		return list
	}
	return value
}

// connection returns a list whose pages are selected with first, last and after.
func connection(all []object) resolver {
	return func(arguments map[string]any) any {
		begin, end := 0, len(all)
		if after, ok := arguments["after"].(string); ok {
			begin, _ = strconv.Atoi(strings.TrimPrefix(after, "after-"))
		}
		if first := number(arguments["first"]); first > 0 {
			end = min(end, begin+first)
		}
		if last := number(arguments["last"]); last > 0 {
			begin = max(begin, end-last)
		}
		begin = min(begin, end)
		page := object{"hasNextPage": end < len(all), "hasPreviousPage": begin > 0, "startCursor": nil, "endCursor": nil}
		if end > begin {
			page["startCursor"], page["endCursor"] = fmt.Sprintf("after-%d", begin), fmt.Sprintf("after-%d", end)
		}
		return object{"totalCount": len(all), "nodes": slices.Clone(all[begin:end]), "pageInfo": page}
	}
}

// number returns an argument that is a number, or 0.
func number(argument any) int {
	n, _ := strconv.Atoi(fmt.Sprint(argument))
	return n
}
