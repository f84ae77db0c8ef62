package event

import "slices"

// Index finds events by type without scanning the journal. The zero value is an empty
// index. It is not safe for concurrent use; the methods of Journal are.
type Index struct {
	events []Event
	byType map[Type][]int // places in events, in order
}

// NewIndex returns an index over events.
func NewIndex(events []Event) *Index {
	x := &Index{events: events[:len(events):len(events)], byType: map[Type][]int{}}
	for i, e := range events {
		x.byType[e.Type] = append(x.byType[e.Type], i)
	}
	return x
}

func (x *Index) add(e Event) {
	x.byType[e.Type] = append(x.byType[e.Type], len(x.events))
	x.events = append(x.events, e)
}

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
