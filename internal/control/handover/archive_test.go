package handover

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/event"
)

// A session that ended on another machine can end here, too, after all of its steps.
func TestWithoutEnd(t *testing.T) {
	t.Parallel()
	for types, want := range map[string]int{
		"session.started step.started":                                                                      2,
		"session.started step.started step.completed step.started land.intended":                            4,
		"session.started step.started land.intended check.ended land.intended":                              2,
		"session.started step.started land.intended step.started step.completed land.intended warning":      5,
		"session.started step.started step.completed task.released session.completed":                       3,
		"session.started step.started session.failed session.resumed step.started session.cancelled":        5,
		"session.started step.started session.waiting review.answered session.failed task.released":         4,
		"session.started step.completed session.failed task.released session.failed warning session.failed": 2,
		"session.started session.cancelled":                                                                 1,
		"":                                                                                                  0,
	} {
		var content, kept string
		for i, name := range strings.Fields(types) {
			line := fmt.Sprintf(`{"v":%d,"seq":%d,"time":"2031-01-01T00:00:00Z","type":%q,"session":"s"}`+"\n", event.Version, i+1, name)
			if content += line; i < want {
				kept += line
			}
		}
		if got := string(withoutEnd([]byte(content))); got != kept {
			t.Errorf("%s:\n%s", types, got)
		}
	}
}
