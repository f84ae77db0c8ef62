package driver_test

import (
	"testing"

	"github.com/coven-run/coven/internal/driver"
	"github.com/coven-run/coven/plugins/provider"
)

// Faults of the account, the model and the server are not failures of the agent. Limits, logins and bad requests are no faults.
func TestFaultOf(t *testing.T) {
	for status, want := range map[int]string{
		0: "", 200: "", 400: "", 401: "", 402: "billing_error", 403: "oauth_org_not_allowed", 404: "model_not_found", 413: "",
		429: "", 500: "server_error", 502: "server_error", 503: "server_error",
	} {
		if got := driver.FaultOf(provider.Result{Status: status}); got != want {
			t.Errorf("%d: %q, want %q", status, got, want)
		}
		if got := driver.FaultOf(provider.Result{Status: status, OK: true}); got != "" {
			t.Errorf("%d, but OK: %q", status, got)
		}
	}
	if got := driver.FaultOf(provider.Result{Status: 529, Limit: true}); got != "" {
		t.Errorf("a limit: %q", got)
	}
}
