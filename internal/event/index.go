package event

import "slices"

// Index finds events by type or path without scanning all of them. The zero value
// is an empty index. It is not safe for concurrent use; the methods of Journal are.
type Index struct {
	events []Event
	byType map[Type][]int   // indexes into events, in order
	byPath map[string][]int // the same for the first paths events; built by At
	paths  int
}

// NewIndex returns an index over events.
func NewIndex(events []Event) *Index {
	x := &Index{}
	x.Read(events)
	return x
}

// Read adds new events. events must begin with the events that were already added.
func (x *Index) Read(events []Event) {
	if x.byType == nil {
		x.byType = map[Type][]int{}
	}
	for i := len(x.events); i < len(events); i++ {
		x.byType[events[i].Type] = append(x.byType[events[i].Type], i)
	}
	x.events = events[:len(events):len(events)]
}

// add adds one event.
func (x *Index) add(e Event) {
	x.byType[e.Type] = append(x.byType[e.Type], len(x.events))
	x.events = append(x.events, e)
}

// Len returns the number of events.
func (x *Index) Len() int { return len(x.events) }

// Of returns the events of the given types, in order.
func (x *Index) Of(types ...Type) []Event {
	var places []int
	for _, t := range types {
		places = append(places, x.byType[t]...)
	}
	if len(types) > 1 {
		slices.Sort(places)
	}
	found := make([]Event, len(places))
	for i, at := range places {
		found[i] = x.events[at]
	}
	return found
}

// At returns the events of the given types with a path, in order.
func (x *Index) At(path string, types ...Type) []Event {
	if x.byPath == nil {
		x.byPath = map[string][]int{}
	}
	for ; x.paths < len(x.events); x.paths++ {
		p := x.events[x.paths].Path
		x.byPath[p] = append(x.byPath[p], x.paths)
	}
	var found []Event
	for _, at := range x.byPath[path] {
		if e := x.events[at]; slices.Contains(types, e.Type) {
			found = append(found, e)
		}
	}
	return found
}

// Has reports whether there is an event of one of the types.
func (x *Index) Has(types ...Type) bool {
	return slices.ContainsFunc(types, func(t Type) bool { return len(x.byType[t]) > 0 })
}

// Last returns the last event of the given types.
func (x *Index) Last(types ...Type) (Event, bool) {
	last := -1
	for _, t := range types {
		if places := x.byType[t]; len(places) > 0 {
			last = max(last, places[len(places)-1])
		}
	}
	if last < 0 {
		return Event{}, false
	}
	return x.events[last], true
}

// Since returns the last event of the given types and all events after it, or nil if
// there is none.
func (x *Index) Since(types ...Type) []Event {
	first, ok := x.Last(types...)
	if !ok {
		return nil
	}
	return x.events[first.Seq-x.events[0].Seq : len(x.events) : len(x.events)]
}
