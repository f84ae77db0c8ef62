package receipts

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/attestation"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/worktree/notes"
)

func oid(digit string) string { return strings.Repeat(digit, 40) }

// report returns a report about a commit and its tree, with the receipt of a check that had to pass.
func report() *Report {
	return &Report{Commit: oid("1"), Tree: oid("2"), Verified: true, Statement: &attestation.Statement{
		Subject: []attestation.Subject{{Name: "commit", Digest: attestation.Digest{Commit: oid("1")}}, {Name: "tree", Digest: attestation.Digest{Tree: oid("2")}}},
		Predicate: attestation.Landing{
			Checks: []attestation.Check{{Command: "make other", ExitCode: 1, Tree: oid("8")}, {Command: "make test", Required: true, Tree: oid("2")}},
		},
	}}
}

// says fails unless the last point of the report has a result and matches a pattern.
func (r *Report) says(t *testing.T, result, pattern string) {
	t.Helper()
	last := r.Points[len(r.Points)-1]
	if last.Result != result || !regexp.MustCompile("^"+pattern+"$").MatchString(last.Detail) || r.Verified == (result == Failed) {
		t.Errorf("%+v instead of %s: %s", last, result, pattern)
	}
}

func TestSubject(t *testing.T) {
	good := notes.Landed{Commit: oid("1"), Tree: oid("2")}
	for _, c := range []struct {
		change          func(r *Report, of *notes.Landed)
		result, pattern string
	}{
		{func(*Report, *notes.Landed) {}, OK, "commit 1+ and its tree 2+"},
		{func(r *Report, _ *notes.Landed) { r.Commit = oid("7") }, Failed, "the receipt is about commit 1+: its note was moved here"},
		{func(r *Report, _ *notes.Landed) { r.Tree = oid("7") }, Failed, "the receipt is about tree 2+, but the commit has tree 7+"},
		{func(_ *Report, of *notes.Landed) { of.Commit = oid("7") }, Failed, "the note is about commit 7+ and tree 2+, its receipt about others"},
		{func(_ *Report, of *notes.Landed) { of.Tree = oid("7") }, Failed, "the note is about commit 1+ and tree 7+, its receipt about others"},
	} {
		r, of := report(), good
		c.change(r, &of)
		r.subject(notes.Note{Landed: of})
		r.says(t, c.result, c.pattern)
	}
}

func TestChecks(t *testing.T) {
	for _, c := range []struct {
		change          func(check *attestation.Check)
		need            bool
		result, pattern string
	}{
		{func(*attestation.Check) {}, true, OK, "1 passed on exactly this tree"},
		{func(c *attestation.Check) { c.ExitCode = 3 }, false, Failed, "make test ended with exit code 3"},
		{func(c *attestation.Check) { c.Tree = oid("7") }, false, Failed, "make test ran on tree 7+ instead of tree 2+, which landed"},
		{func(c *attestation.Check) { c.Required = false }, false, Skipped, "none was required"},
		{func(c *attestation.Check) { c.Required = false }, true, Failed, "none was required: the receipt does not prove .*"},
	} {
		r := report()
		c.change(&r.Statement.Predicate.Checks[1])
		if err := r.checks(t.Context(), nil, c.need); err != nil {
			t.Fatal(err)
		}
		r.says(t, c.result, c.pattern)
	}
}

func TestSignature(t *testing.T) {
	for _, c := range []struct {
		of              notes.Signature
		signed          bool
		result, pattern string
	}{
		{notes.Signature{Result: notes.Good, Signer: "ada", Key: "K"}, true, OK, `good, by ada \(K\)`},
		{notes.Signature{Result: notes.Bad, Detail: "changed"}, false, Failed, "bad: changed"},
		{notes.Signature{Result: notes.Unknown, Key: "K", Detail: "who"}, false, Skipped, "unknown, key K: who"},
		{notes.Signature{Result: notes.Unknown, Key: "K", Detail: "who"}, true, Failed, "unknown, key K: who"},
		{notes.Signature{Result: notes.Unsigned}, false, Skipped, "the receipt is not signed"},
		{notes.Signature{Result: notes.Unsigned}, true, Failed, "the receipt is not signed"},
	} {
		r := report()
		r.Signature = c.of
		r.signature(c.signed)
		r.says(t, c.result, c.pattern)
	}
}

func TestReview(t *testing.T) {
	r := report()
	r.review()
	r.says(t, OK, "no approval was required")
	p := &r.Statement.Predicate
	p.Reviews = []attestation.Review{{Reviewer: "ada", Verdict: "pass", Tree: oid("2")}, {Reviewer: "eve", Verdict: "fail", Tree: oid("7")}}
	p.Approval = attestation.Approval{Required: true, By: "bob"}
	r.review()
	r.says(t, OK, `ada: pass; eve: fail \(on tree 7+, before the target was merged\); approved by bob at \S+ \S+`)
}

// The output of a check is compared with its part of the log of its step.
func TestLogs(t *testing.T) {
	hash := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		return hex.EncodeToString(sum[:])
	}
	const list = "1  /a\n"
	s := attestation.Statement{Predicate: attestation.Landing{Checks: []attestation.Check{
		{Command: "one", Step: "land#1", Log: hash("out\n"), ReadOutside: &attestation.ReadOutside{SHA256: hash(list)}},
		{Command: "two", Step: "test#1", Log: hash("")},
	}}}
	receipt := event.Receipt{Command: "one", LogPart: event.LogPart{Sum: hash("out\n"), At: 4, Size: 4}}
	var events []event.Event
	add := func(kind event.Type, path string, data any) {
		text, err := json.Marshal(data)
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, event.Event{Type: kind, Path: path, Data: text})
	}
	add(event.CheckStarted, "land#1", event.Check{Text: "one"})
	add(event.CheckEnded, "land#1", receipt)
	add(event.StepCompleted, "other#1", event.Result{Receipts: []event.Receipt{{LogPart: event.LogPart{Sum: hash("out\n"), At: 9, Size: 4}}}})
	add(event.StepCompleted, "test#1", event.Result{Receipts: []event.Receipt{{Command: "two", LogPart: event.LogPart{Sum: hash("")}}}})
	check := func(log, reads, result, pattern string) {
		t.Helper()
		dir := filepath.Join(t.TempDir(), "one")
		for file, text := range map[string]string{session.LogFile(dir, "land#1"): log, session.LogFile(dir, "test#1"): "x", filepath.Join(dir, "reads", hash(list)): reads} {
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o600); text != "-" && err != nil {
				t.Fatal(err)
			}
			if text == "-" {
				_ = os.Remove(file)
			}
		}
		r := report()
		r.logs(dir, s, events)
		r.says(t, result, pattern)
	}
	check("sth\nout\nmore\n", list, OK, "2 have the recorded hash")
	check("out\nsth\n", list, Failed, "in session one, the log of one does not have the recorded hash")
	check("sth\nout", list, Failed, "in session one, the log of one does not have the recorded hash")
	check("-", list, Failed, "in session one, the log of one is missing")
	check("sth\nout\n", "2  /b\n", Failed, "in session one, the list of the files that one read outside the tree does not have the recorded hash")
	check("sth\nout\n", "-", Failed, "in session one, the list of the files that one read outside the tree is missing")

	whole := events
	events = whole[1:] // the check of a batch, in the session of another task
	check("-", "-", OK, "1 have the recorded hash; the log of one is in the session of another task")
	s.Predicate.Checks = s.Predicate.Checks[:1]
	check("-", "-", Skipped, "the log of one is in the session of another task")
	events = whole[:1] // recorded by an older version
	receipt.At, receipt.Size = 0, 0
	add(event.CheckEnded, "land#1", receipt)
	check("-", "-", Skipped, "the session does not say where the output of one is in its log")
}
