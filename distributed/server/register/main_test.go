package main

import (
	"strings"
	"testing"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/coven-run/coven/distributed/server/servertest"
)

func TestRegister(t *testing.T) {
	environ := servertest.Use(t).Environ()
	for _, v := range environ {
		name, value, _ := strings.Cut(v, "=")
		t.Setenv(name, value)
	}
	t.Setenv("TEMPORAL_NAMESPACE", "second")
	for range 2 {
		if err := register(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	options, err := servertest.Options(environ)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.DialContext(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	got, err := c.WorkflowService().DescribeNamespace(t.Context(), &workflowservice.DescribeNamespaceRequest{Namespace: "second"})
	if err != nil || got.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration().Hours() != 7*24 {
		t.Errorf("got %v, %v", got, err)
	}
}
