// Package server has the files that set up Temporal's own server for coven, see README.md, and
// registers coven's namespace on it.
package server

import (
	"context"
	"embed"
	"errors"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/coven-run/coven/distributed/connect"
)

// Namespace is the namespace of coven's workflows.
const Namespace = connect.Namespace

// retention is how long the server keeps a workflow after its end. The git remote has the session.
const retention = 7 * 24 * time.Hour

// Files are the configuration files and scripts of the set-ups, at the root.
//
//go:embed development.sh development.yaml development-dynamic.yaml team.sh team.yaml team-dynamic.yaml
var Files embed.FS

// Register creates a namespace. It does nothing if the namespace exists. With an authorizer, it
// needs the permission NAMESPACE:admin.
func Register(ctx context.Context, c client.Client, namespace string) error {
	_, err := c.WorkflowService().RegisterNamespace(ctx, &workflowservice.RegisterNamespaceRequest{
		Namespace:                        namespace,
		Description:                      "coven sessions: ids, refs and hashes",
		WorkflowExecutionRetentionPeriod: durationpb.New(retention),
		HistoryArchivalState:             enumspb.ARCHIVAL_STATE_DISABLED,
		VisibilityArchivalState:          enumspb.ARCHIVAL_STATE_DISABLED,
	})
	var exists *serviceerror.NamespaceAlreadyExists
	if errors.As(err, &exists) {
		return nil
	}
	return err
}
