package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/coven-run/coven/internal/attestation"
	"github.com/coven-run/coven/internal/session"
)

// cmdReceipts implements receipts REPO N: at least N commits of the repository have a receipt, and coven verifies each.
func cmdReceipts(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 2, "receipts REPO N")
	landed := 0
	for line := range strings.Lines(git(ts, args[0], "notes", "--ref=coven", "list")) {
		_, commit, _ := strings.Cut(strings.TrimSpace(line), " ")
		if out, code := covenIn(ts, args[0], "verify", commit); code != 0 {
			ts.Fatalf("exit code %d:\n%s", code, out)
		}
		landed++
	}
	if n := atoi(ts, args[1]); landed < n {
		ts.Fatalf("%d landings have a receipt, fewer than %d", landed, n)
	}
}

// covenIn runs coven in a directory, and returns its output and its exit code.
func covenIn(ts *testscript.TestScript, dir string, args ...string) (out string, code int) {
	program, err := lookPath("coven", ts.Getenv("PATH"))
	ts.Check(err)
	cmd := exec.CommandContext(context.Background(), program, args...)
	cmd.Dir, cmd.Env = ts.MkAbs(dir), environment(ts)
	text, err := cmd.CombinedOutput()
	if ended, ok := errors.AsType[*exec.ExitError](err); ok {
		return string(text), ended.ExitCode()
	}
	ts.Check(err)
	return string(text), 0
}

// A tampering changes a receipt, or the commit, journal or log that it is about. The repository is restored after each one.
type tampering struct {
	ts        *testscript.TestScript
	dir       string // of the repository
	commit    string
	text      string // of the note
	statement attestation.Statement
	session   string // directory of the session; empty in a clone
}

func newTampering(ts *testscript.TestScript, dir, commit string) *tampering {
	t := &tampering{ts: ts, dir: dir, commit: commit, text: git(ts, dir, "notes", "--ref=coven", "show", commit)}
	_, message, _ := strings.Cut(t.text, "\n\n")
	var err error
	t.statement, err = attestation.Parse(message)
	ts.Check(err)
	if dir := filepath.Join(ts.MkAbs(dir), session.Dir, t.statement.Predicate.Session); exists(dir) {
		t.session = dir
	}
	return t
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func (t *tampering) git(args ...string) string { return strings.TrimSpace(git(t.ts, t.dir, args...)) }

// file writes a file, and returns its name.
func (t *tampering) file(text string) string {
	name := t.ts.MkAbs("../tampered")
	t.ts.Check(os.WriteFile(name, []byte(text), 0o600))
	return name
}

func (t *tampering) blob(text string) string { return t.git("hash-object", "-w", t.file(text)) }

// note replaces the note of a commit.
func (t *tampering) note(commit, text string) {
	t.git("notes", "--ref=coven", "add", "-f", "-C", t.blob(text), commit)
}

// notes replaces all notes by one tree entry, in the format of git mktree.
func (t *tampering) entry(entry string) {
	cmd := exec.CommandContext(context.Background(), "git", "mktree", "--missing")
	cmd.Dir, cmd.Env, cmd.Stdin = t.ts.MkAbs(t.dir), environment(t.ts), strings.NewReader(entry+"\n")
	tree, err := cmd.Output()
	t.ts.Check(err)
	t.git("update-ref", "refs/notes/coven", t.git("commit-tree", "-m", "notes", strings.TrimSpace(string(tree))))
}

// written returns the note of a statement that is not signed, or that is signed with the key in options.
func (t *tampering) written(statement string, options ...string) string {
	args := append(options, "commit-tree", "-p", t.commit, "-F", t.file(statement), t.commit+"^{tree}")
	if len(options) > 0 {
		args = append(args, "-S")
	}
	return git(t.ts, t.dir, "cat-file", "commit", t.git(args...))
}

// message replaces a part of the statement in a note without a signature.
func (t *tampering) message(old, now string) {
	_, message, _ := strings.Cut(t.text, "\n\n")
	changed := strings.Replace(message, old, now, 1)
	if changed == message {
		t.ts.Fatalf("the statement has no %q", old)
	}
	t.note(t.commit, t.written(changed))
}

// log returns the log of a check.
func (t *tampering) log(command string) string {
	for _, c := range t.statement.Predicate.Checks {
		if c.Command == command {
			return session.LogFile(t.session, c.Step)
		}
	}
	t.ts.Fatalf("no check %q", command)
	return ""
}

// fields are changes of one field of a statement as coven writes it, by the name of the field.
var fields = map[string]func(s *attestation.Statement){
	"task":                         func(s *attestation.Statement) { s.Predicate.Task = "t-99" },
	"target":                       func(s *attestation.Statement) { s.Predicate.Target = "refs/heads/release" },
	"oldTip":                       func(s *attestation.Statement) { s.Predicate.Old = s.Commit() },
	"strategy":                     func(s *attestation.Statement) { s.Predicate.Strategy = "rebase" },
	"newTip":                       func(s *attestation.Statement) { s.Predicate.Head = s.Commit() },
	"checkedWith":                  func(s *attestation.Statement) { s.Predicate.With = []string{"t-99"} },
	"setup[0]":                     func(s *attestation.Statement) { s.Predicate.Setup[0] = "make other" },
	"setup":                        func(s *attestation.Statement) { s.Predicate.Setup = nil },
	"checks":                       func(s *attestation.Statement) { s.Predicate.Checks = s.Predicate.Checks[:1] },
	"checks[1].command":            func(s *attestation.Statement) { s.Predicate.Checks[1].Command = "make test" },
	"checks[1].required":           func(s *attestation.Statement) { s.Predicate.Checks[1].Required = false },
	"checks[1].step":               func(s *attestation.Statement) { s.Predicate.Checks[1].Step = "land[2]" },
	"checks[0].exitCode":           func(s *attestation.Statement) { s.Predicate.Checks[0].ExitCode = 4 },
	"checks[1].durationNs":         func(s *attestation.Statement) { s.Predicate.Checks[1].Duration = time.Hour },
	"checks[1].logSha256":          func(s *attestation.Statement) { s.Predicate.Checks[1].Log = strings.Repeat("0", 64) },
	"checks[0].tree":               func(s *attestation.Statement) { s.Predicate.Checks[0].Tree = s.Commit() },
	"checks[0].settings":           func(s *attestation.Statement) { s.Predicate.Checks[0].Settings = strings.Repeat("0", 64) },
	"checks[1].readOutside.text":   func(s *attestation.Statement) { s.Predicate.Checks[1].ReadOutside.Text = "1 in src" },
	"checks[1].readOutside.sha256": func(s *attestation.Statement) { s.Predicate.Checks[1].ReadOutside.SHA256 = strings.Repeat("0", 64) },
	"checks[1].readOutside":        func(s *attestation.Statement) { s.Predicate.Checks[1].ReadOutside = nil },
	"checks[2].reusedFrom":         func(s *attestation.Statement) { s.Predicate.Checks[2].Reused = "2026-01-01-other" },
	"checks[1].failedBeside":       func(s *attestation.Statement) { s.Predicate.Checks[1].FailedBeside = "t-99" },
	"checks[1].notIsolated":        func(s *attestation.Statement) { s.Predicate.Checks[1].NotIsolated = true },
	"reviews":                      func(s *attestation.Statement) { s.Predicate.Reviews = s.Predicate.Reviews[1:] },
	"reviews[0].reviewer":          func(s *attestation.Statement) { s.Predicate.Reviews[0].Reviewer = "eve" },
	"reviews[0].step":              func(s *attestation.Statement) { s.Predicate.Reviews[0].Step = "audit" },
	"reviews[0].verdict":           func(s *attestation.Statement) { s.Predicate.Reviews[0].Verdict = "fail" },
	"reviews[0].tree":              func(s *attestation.Statement) { s.Predicate.Reviews[0].Tree = s.Commit() },
	"approval.by":                  func(s *attestation.Statement) { s.Predicate.Approval.By = "eve" },
	"approval.at":                  func(s *attestation.Statement) { s.Predicate.Approval.At = time.Unix(1, 0).UTC() },
	"approval.tree":                func(s *attestation.Statement) { s.Predicate.Approval.Tree = s.Commit() },
	"approval.at, approval.by, approval.required, approval.tree": func(s *attestation.Statement) { s.Predicate.Approval = attestation.Approval{} },
}

// tamperings are changes that coven verify refuses where the session is, with the reason.
var tamperings = []struct {
	name    string
	do      func(t *tampering)
	refused string // pattern of the failed point
}{
	// the form of the note
	{"no statement", func(t *tampering) { t.note(t.commit, "fine\n") }, `form +the note is not the text of a commit`},
	{"truncated", func(t *tampering) { t.note(t.commit, t.text[:len(t.text)/2]) }, `form +the receipt is not valid: not a JSON object`},
	{"cut in its headers", func(t *tampering) { t.note(t.commit, t.text[:30]) }, `form +the note is not the text of a commit`},
	{"bytes after it", func(t *tampering) { t.note(t.commit, t.text+"{}\n") }, `form +the receipt is not valid: not a JSON object`},
	{"another header", func(t *tampering) { t.note(t.commit, strings.Replace(t.text, "\ngpgsig", "\nencoding x\ngpgsig", 1)) }, `form +.*it has the headers tree, parent, author, committer, encoding, gpgsig`},
	{"two parents", func(t *tampering) {
		t.note(t.commit, strings.Replace(t.text, "\nauthor", "\nparent "+t.statement.Predicate.Old+"\nauthor", 1))
	}, `form +.*it has the headers tree, parent, parent`},
	{"enormous", func(t *tampering) { t.note(t.commit, t.text+strings.Repeat(" ", 5<<20)) }, `form +.*has [0-9]+ bytes, more than 4194304`},
	{"a symbolic link", func(t *tampering) { t.entry("120000 blob " + t.blob(t.text) + "\t" + t.commit) }, `form +.*it is a symbolic link`},
	{"a directory", func(t *tampering) { t.entry("040000 tree " + t.git("rev-parse", t.commit+"^{tree}") + "\t" + t.commit) }, `form +.*it is a directory`},
	{"a submodule", func(t *tampering) { t.entry("160000 commit " + t.commit + "\t" + t.commit) }, `form +.*it is a submodule`},
	{"a note that is missing", func(t *tampering) { t.entry("100644 blob " + strings.Repeat("1", 40) + "\t" + t.commit) }, `read refs/notes/coven.*1111`},
	{"notes that are a tree", func(t *tampering) { t.git("update-ref", "refs/notes/coven", t.commit+"^{tree}") }, `no receipt of commit`},

	// the statement
	{"type of statement", func(t *tampering) { t.message("in-toto.io/Statement/v1", "in-toto.io/Statement/v2") }, `form +the receipt has the type "https://in-toto.io/Statement/v2"`},
	{"type of predicate", func(t *tampering) { t.message("landing/v1", "landing/v2") }, `form +the receipt has the predicate type .*landing/v2"; this coven knows`},
	{"name twice", func(t *tampering) { t.message(`"exitCode": 0`, `"exitCode": 1, "exitCode": 0`) }, `form +.*"exitCode" occurs twice`},
	{"name in another case", func(t *tampering) { t.message(`"exitCode": 0`, `"ExitCode": 1, "exitCode": 0`) }, `form +.*"ExitCode" and "exitCode"|form +.*"exitCode" and "ExitCode"`},
	{"unknown field", func(t *tampering) { t.message(`"exitCode": 0`, `"exitCode": 0, "note": "fine"`) }, `form +.*unknown field "note"`},
	{"field without a value", func(t *tampering) { t.message(`"exitCode": 0`, `"exitCode": null`) }, `form +.*fields are missing, or not as coven writes them`},
	{"text instead of a number", func(t *tampering) { t.message(`"exitCode": 0`, `"exitCode": "0"`) }, `form +.*cannot unmarshal string`},
	{"no object ID", func(t *tampering) { t.message(`"oldTip": "`, `"oldTip": "x`) }, `form +the receipt has the oldTip "x[0-9a-f]+", which is no object ID`},

	// the commit
	{"note of another commit", func(t *tampering) { t.git("notes", "--ref=coven", "copy", "-f", t.statement.Predicate.Old, t.commit) }, `subject +the receipt is about commit [0-9a-f]+: its note was moved here`},
	{"another tree", func(t *tampering) {
		t.message(t.statement.Tree(), t.git("rev-parse", t.commit+"~1^{tree}"))
	}, `subject +the receipt is about tree [0-9a-f]+, but the commit has tree`},
	{"statement in the note of another commit", func(t *tampering) {
		t.note(t.commit, strings.Replace(t.written(strings.SplitN(t.text, "\n\n", 2)[1]), "parent "+t.commit, "parent "+t.statement.Predicate.Old, 1))
	}, `subject +the note is about commit [0-9a-f]+ and tree [0-9a-f]+, its receipt about others`},

	// fields of the statement
	{"a required check that failed", func(t *tampering) {
		t.statement.Predicate.Checks[1].ExitCode = 1
		t.unsigned()
	}, `checks +sh check.sh ended with exit code 1`},
	{"a check of another tree", func(t *tampering) {
		t.statement.Predicate.Checks[1].Tree = t.git("rev-parse", t.commit+"~1^{tree}")
		t.unsigned()
	}, `checks +sh check.sh ran on tree [0-9a-f]+ instead of tree [0-9a-f]+, which landed`},
	{"another session", func(t *tampering) {
		t.statement.Predicate.Session = t.other().statement.Predicate.Session
		t.unsigned()
	}, `journal +session .* did not land commit`},
	{"no session", func(t *tampering) {
		t.statement.Predicate.Session = "../" + filepath.Base(t.session)
		t.unsigned()
	}, `journal +"../.*" is no session`},
	{"signature of another note", func(t *tampering) {
		other := git(t.ts, t.dir, "notes", "--ref=coven", "show", t.statement.Predicate.Old)
		sig := regexp.MustCompile(`(?s)\ngpgsig .*?\n\n`)
		t.note(t.commit, sig.ReplaceAllLiteralString(t.text, sig.FindString(other)))
	}, `signature +bad(, key .*)?: the receipt is not the signed one`},

	// the session
	{"more in a log", func(t *tampering) { t.replace(t.log("sh check.sh"), "check.sh\n", "check.sh\nfake\n") }, `logs +in session .*, the log of sh check.sh does not have the recorded hash`},
	{"a hidden part of a log", func(t *tampering) { t.replace(t.log("sh check.sh"), "check.sh\n", "***\n") }, `logs +in session .*, the log of sh check.sh does not have the recorded hash`},
	{"an empty log", func(t *tampering) { t.ts.Check(os.Truncate(t.log("sh check.sh"), 0)) }, `logs +in session .*, the log of sh check.sh does not have the recorded hash`},
	{"log of another task", func(t *tampering) {
		text, err := os.ReadFile(t.other().log("sh check.sh"))
		t.ts.Check(errors.Join(err, os.WriteFile(t.log("sh check.sh"), text, 0o600)))
	}, `logs +in session .*, the log of sh check.sh does not have the recorded hash`},
	{"no log", func(t *tampering) { t.ts.Check(os.Remove(t.log("sh check.sh"))) }, `logs +in session .*, the log of sh check.sh is missing`},
	{"a link instead of a log", func(t *tampering) {
		t.ts.Check(errors.Join(os.Rename(t.log("sh check.sh"), t.ts.MkAbs("../tampered")), os.Symlink(t.ts.MkAbs("../tampered"), t.log("sh check.sh"))))
	}, `logs +in session .*, the log of sh check.sh: .*path escapes`},
	{"a pipe instead of a log", func(t *tampering) {
		t.ts.Check(os.Remove(t.log("sh check.sh")))
		t.ts.Check(syscall.Mkfifo(t.log("sh check.sh"), 0o600))
	}, `logs +in session .*, the log of sh check.sh: it is not a file`},
	{"read files", func(t *tampering) {
		t.replace(filepath.Join(t.session, "reads", t.statement.Predicate.Checks[1].ReadOutside.SHA256), "deps/lib", "deps/lob")
	}, `logs +in session .*, the list of the files that sh check.sh read outside the tree does not have the recorded hash`},
	{"no list of read files", func(t *tampering) { t.ts.Check(os.RemoveAll(filepath.Join(t.session, "reads"))) }, `logs +in session .*, the list of the files that sh check.sh read outside the tree is missing`},
	{"exit code in the journal", func(t *tampering) {
		t.replace(filepath.Join(t.session, "events.jsonl"), `"exit_code":0`, `"exit_code":1`)
	}, `journal +.*differ in: checks\[0\].exitCode`},
	{"approval in the journal", func(t *tampering) {
		t.replace(filepath.Join(t.session, "events.jsonl"), `"approved":true`, `"approved":false`)
	}, `journal +.*differ in: approval`},
	{"landing in the journal", func(t *tampering) {
		t.replace(filepath.Join(t.session, "events.jsonl"), `"type":"land.done"`, `"type":"land.gone"`)
	}, `journal +session .* did not land commit`},
	{"damaged journal", func(t *tampering) { t.replace(filepath.Join(t.session, "events.jsonl"), `"seq":3,`, `"seq":4,`) }, `journal +session .*: .*events.jsonl`},
	{"required checks in the plan", func(t *tampering) { t.replace(filepath.Join(t.session, "plan.yaml"), "sh check.sh", "sh chuck.sh") }, `journal +.*differ in: checks\[1\].required`},
}

// other returns the receipt of the commit before.
func (t *tampering) other() *tampering { return newTampering(t.ts, t.dir, t.statement.Predicate.Old) }

// unsigned stores the statement in a note without a signature.
func (t *tampering) unsigned() {
	text, err := t.statement.Text()
	t.ts.Check(err)
	t.note(t.commit, t.written(text))
}

// replace replaces a part of a file.
func (t *tampering) replace(file, old, now string) {
	text, err := os.ReadFile(file)
	t.ts.Check(err)
	changed := strings.Replace(string(text), old, now, 1)
	if changed == string(text) {
		t.ts.Fatalf("%s has no %q", file, old)
	}
	t.ts.Check(os.WriteFile(file, []byte(changed), 0o600))
}

// cmdTampered implements tampered REPO CLONE TITLE: coven verify refuses each change of the receipt of the commit with this title, and of
// its session, with the reason and exit code 1. The session is in REPO; CLONE has only the receipts.
func cmdTampered(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 3, "tampered REPO CLONE TITLE")
	commit := strings.TrimSpace(git(ts, args[0], "log", "-1", "--format=%H", "--grep=^"+args[2]+"$"))
	var wrong []string
	try := func(dir, name string, do func(*tampering), refused string, options ...string) {
		t := newTampering(ts, dir, commit)
		notes := t.git("rev-parse", "refs/notes/coven")
		saved := t.session + ".saved"
		if t.session != "" {
			ts.Check(os.CopyFS(saved, os.DirFS(t.session)))
		}
		do(t)
		out, code := covenIn(ts, dir, append(append([]string{"verify"}, options...), commit)...)
		if code != 1 || !regexp.MustCompile(`(?m)(^  failed   |^coven: )`+refused).MatchString(out) {
			wrong = append(wrong, fmt.Sprintf("%s: exit code %d, and not %q:\n%s", name, code, refused, out))
		}
		t.git("update-ref", "refs/notes/coven", notes)
		if t.session != "" {
			ts.Check(errors.Join(os.RemoveAll(t.session), os.Rename(saved, t.session)))
		}
		if out, code := covenIn(ts, dir, "verify", commit); code != 0 {
			ts.Fatalf("after %s: exit code %d\n%s", name, code, out)
		}
	}
	for field, change := range fields {
		try(args[0], "unsigned "+field, func(t *tampering) { change(&t.statement); t.unsigned() }, `journal +.* differ in: `+strings.NewReplacer("[", `\[`, "]", `\]`).Replace(field)+`$`)
		try(args[1], "signed "+field, func(t *tampering) {
			change(&t.statement)
			text, err := t.statement.Text()
			ts.Check(err)
			head, _, _ := strings.Cut(t.text, "\n\n")
			t.note(t.commit, head+"\n\n"+text)
		}, `signature +bad(, key .*)?: the receipt is not the signed one`)
	}
	for _, c := range tamperings {
		try(args[0], c.name, c.do, c.refused)
	}
	other := func(t *tampering) {
		t.note(t.commit, t.written(strings.SplitN(t.text, "\n\n", 2)[1], "-c", "gpg.format=ssh", "-c", "user.signingKey="+ts.MkAbs("../other.pub")))
	}
	try(args[1], "no signature", func(t *tampering) { t.unsigned() }, `signature +the receipt is not signed`, "--signed")
	try(args[1], "another key", other, `signature +unknown, key SHA256:\S+: it is good, but its key is not trusted`, "--signed")
	try(args[1], "no note", func(t *tampering) { t.git("notes", "--ref=coven", "remove", commit) }, `no receipt of commit`)
	amended := strings.TrimSpace(git(ts, args[1], "commit-tree", "-p", commit+"~1", "-m", "amended", commit+"^{tree}"))
	if out, code := covenIn(ts, args[1], "verify", amended); code != 1 || !strings.Contains(out, "no receipt of commit") {
		ts.Fatalf("amended: exit code %d\n%s", code, out)
	}
	if len(wrong) > 0 {
		ts.Fatalf("%s", strings.Join(wrong, "\n"))
	}
	ts.Logf("%s", fmt.Sprint(2*len(fields)+len(tamperings)+4, " changes refused"))
}
