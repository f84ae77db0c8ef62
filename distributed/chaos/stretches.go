package main

import (
	"os"
	"slices"
	"strings"
	"time"
)

// A stretch is a part of a session on one machine, as its coven-worker has logged it.
type stretch struct {
	task, machine string
	begin, end    time.Time // no end: the machine was lost
	result        string
}

// stretches reads the logs of all machines. They are sorted by their beginning.
func (r *run) stretches() []stretch {
	r.fleet.mu.Lock()
	machines := slices.Clone(r.fleet.all)
	r.fleet.mu.Unlock()
	var all []stretch
	for _, m := range machines {
		text, err := os.ReadFile(r.fleet.log(m))
		if err == nil {
			all = append(all, parse(m.name, string(text), r.Begun)...)
		}
	}
	slices.SortFunc(all, func(a, b stretch) int { return a.begin.Compare(b.begin) })
	return all
}

// parse reads the log of a machine. Its times have no day; the run has begun at a time.
func parse(machine, log string, begun time.Time) []stretch {
	var all []stretch
	open := map[string]int{}
	for line := range strings.Lines(log) {
		fields := strings.Fields(line)
		if len(fields) < 3 || !strings.HasPrefix(fields[1], "t-") {
			continue
		}
		at, err := time.ParseInLocation(clock, fields[0], time.Local)
		if err != nil {
			continue
		}
		at = time.Date(begun.Year(), begun.Month(), begun.Day(), at.Hour(), at.Minute(), at.Second(), at.Nanosecond(), time.Local)
		if at.Before(begun.Add(-time.Hour)) {
			at = at.AddDate(0, 0, 1)
		}
		task := strings.TrimSuffix(fields[1], ":")
		if i, found := open[task]; found {
			all[i].end, all[i].result = at, strings.Join(fields[2:], " ")
			delete(open, task)
		} else if fields[2] == "begin" {
			open[task] = len(all)
			all = append(all, stretch{task: task, machine: machine, begin: at})
		}
	}
	return all
}

// lost reports whether a stretch ran at a time when its machine was lost, as far as its machine knows, and did not end with an error there, after which
// no machine takes the session over.
func (s stretch) lost(at time.Time) bool {
	return s.end.IsZero() || s.end.After(at) && !strings.HasPrefix(s.result, "coven resume")
}

// running returns the tasks whose agent has had the time to begin.
func (r *run) running() map[string]bool {
	found := map[string]bool{}
	for _, s := range r.stretches() {
		if time.Since(s.begin) > 2*time.Second {
			found[s.task] = true
		}
	}
	return found
}

// A takeover is the time from the loss of a machine to the beginning of a session of it on another one.
type takeover struct {
	fault fault
	task  string
	took  time.Duration
}

// takeovers returns the takeovers, the shortest first.
func takeovers(all []stretch, faults []fault) []takeover {
	var found []takeover
	for _, f := range faults {
		for i, s := range all {
			if s.machine != f.machine || s.begin.After(f.at) || !s.lost(f.at) {
				continue
			}
			next := slices.IndexFunc(all[i+1:], func(n stretch) bool { return n.task == s.task && n.begin.After(f.at) })
			if next < 0 {
				continue
			}
			if n := all[i+1+next]; n.machine != s.machine {
				found = append(found, takeover{fault: f, task: s.task, took: n.begin.Sub(f.at)})
			}
		}
	}
	slices.SortFunc(found, func(a, b takeover) int { return int(a.took - b.took) })
	return found
}
