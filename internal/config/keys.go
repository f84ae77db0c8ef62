package config

import (
	"reflect"
	"strings"
)

// Keys returns the names of all keys, such as run.max_tasks.
func Keys() []string {
	var names []string
	for _, k := range keys() {
		names = append(names, k.name)
	}
	return names
}

// key is a key with a value, as opposed to a section.
type key struct {
	name      string // run.max_tasks
	about     string
	words     []string // allowed values; nil for any
	usersOnly bool
	index     []int // index of the field in Config
}

// keys returns all keys in the order of their fields.
func keys() []key { return keysOf(reflect.TypeFor[Config](), "", nil) }

func keysOf(t reflect.Type, section string, index []int) []key {
	var all []key
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		at := append(index[:len(index):len(index)], i)
		switch {
		case name == "-":
		case isSection(f.Type):
			all = append(all, keysOf(f.Type, section+name+".", at)...)
		default:
			k := key{name: section + name, about: f.Tag.Get("about"), usersOnly: f.Tag.Get("user") == "true", index: at}
			if words := f.Tag.Get("oneof"); words != "" {
				k.words = strings.Split(words, "|")
			}
			all = append(all, k)
		}
	}
	return all
}

// isSection reports whether the fields of a type are separate keys.
func isSection(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t.PkgPath() == reflect.TypeFor[Config]().PkgPath()
}

// of returns the value of a key.
func (k key) of(c Config) any { return reflect.ValueOf(c).FieldByIndex(k.index).Interface() }
