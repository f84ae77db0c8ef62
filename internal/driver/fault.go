package driver

import (
	"net/http"

	"github.com/coven-run/coven/plugins/provider"
)

// FaultOf returns why the API refused a result for a reason that is not the agent's: the account or the model cannot be used,
// or the API does not answer. The words are those of the SDK of Claude Code. It returns "" for other results, and for rate
// limits and refused logins.
func FaultOf(result provider.Result) string {
	switch status := result.Status; {
	case result.OK || result.Limit:
		return ""
	case status == http.StatusPaymentRequired:
		return "billing_error"
	case status == http.StatusForbidden:
		return "oauth_org_not_allowed"
	case status == http.StatusNotFound:
		return "model_not_found"
	case status >= http.StatusInternalServerError:
		return "server_error"
	}
	return ""
}
