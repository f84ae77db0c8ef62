package servertest

import (
	"os"
	"path/filepath"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// Replay checks that workers of this version continue the workflows of earlier ones: the histories in testdata. If it fails, the workflow makes other decisions than
// before. Let it make them only if workflow.GetVersion says so; afterwards, record a history of the new version.
func Replay(t *testing.T, name string, run any) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no histories, %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			r := worker.NewWorkflowReplayer()
			r.RegisterWorkflowWithOptions(run, workflow.RegisterOptions{Name: name})
			if err := r.ReplayWorkflowHistoryFromJSONFile(nil, file); err != nil {
				t.Error(err)
			}
		})
	}
}

// Record writes the history of a workflow to testdata/NAME.json for Replay, if the environment variable RECORD is NAME.
func Record(t *testing.T, c client.Client, id string) {
	t.Helper()
	name := os.Getenv("RECORD")
	if name == "" {
		return
	}
	h := &history.History{}
	for events := c.GetWorkflowHistory(t.Context(), id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); events.HasNext(); {
		e, err := events.Next()
		if err != nil {
			t.Fatal(err)
		}
		h.Events = append(h.Events, e)
	}
	text, err := temporalproto.CustomJSONMarshalOptions{Indent: " "}.Marshal(h)
	if err == nil {
		err = os.MkdirAll("testdata", 0o755) //nolint:gosec // a directory of the repository
	}
	if err == nil {
		err = os.WriteFile(filepath.Join("testdata", name+".json"), text, 0o644) //nolint:gosec // a file of the repository
	}
	if err != nil {
		t.Fatal(err)
	}
}
