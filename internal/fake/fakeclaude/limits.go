package fakeclaude

import (
	"maps"
	"net/http"
	"os"
	"strconv"
	"time"
)

// longestWait is the longest Retry-After that the real CLI accepts.
const longestWait = time.Minute

// watchdog reports whether limits are retried without end.
func watchdog() bool {
	value := os.Getenv("CLAUDE_CODE_RETRY_WATCHDOG")
	return value == "1" || value == "true"
}

// subscriber reports whether the account is a claude.ai subscription rather than an API key.
func subscriber() bool {
	return os.Getenv("CLAUDE_CODE_OAUTH_TOKEN") != "" && os.Getenv("ANTHROPIC_API_KEY") == ""
}

// limited reports whether the API refused because of a limit or an overload.
func (e *apiError) limited() bool {
	return e.status == http.StatusTooManyRequests || e.status == 529
}

// limits is the last reported state of a subscriber's account.
type limits struct{ told object }

// learn reports the state of the account if it has changed.
func (l *limits) learn(out *output, info object) {
	if l.told == nil {
		l.told = object{"status": "allowed", "isUsingOverage": false}
	}
	if maps.Equal(l.told, info) {
		return
	}
	l.told = info
	out.event("rate_limit_event", object{"rate_limit_info": maps.Clone(info)})
}

// refused is like learn, but after a refusal: a refusal without information about the account is
// remembered but not reported.
func (l *limits) refused(out *output, info object) {
	if info["resetsAt"] == nil {
		l.told = info
		return
	}
	l.learn(out, info)
}

// limitsIn reads the headers about a subscriber's account.
func limitsIn(header http.Header) object {
	get := func(name string) string { return header.Get("Anthropic-Ratelimit-Unified-" + name) }
	info := object{"status": "allowed", "isUsingOverage": false}
	if get("Status") == "rejected" {
		info["status"] = "rejected"
	}
	if seconds, err := strconv.ParseInt(get("Reset"), 10, 64); err == nil {
		info["resetsAt"] = seconds
	}
	if claim := get("Representative-Claim"); claim != "" {
		info["rateLimitType"] = claim
	}
	return info
}

// refusedSubscriber returns the text that the real CLI prints instead of an answer.
func refusedSubscriber(info object, said string) string {
	names := map[any]string{"five_hour": "5-hour limit", "seven_day": "weekly limit", "seven_day_opus": "Opus limit"}
	name, known := names[info["rateLimitType"]]
	at, told := info["resetsAt"].(int64)
	if !known || !told {
		return "API Error: Server is temporarily limiting requests (not your usage limit) · " + said
	}
	return "You've hit your " + name + " · resets " + time.Unix(at, 0).Format("3:04pm (MST)")
}
