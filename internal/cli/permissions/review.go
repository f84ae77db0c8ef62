package permissions

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/config"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/permission"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/internal/text/oneline"
)

// reviewJSON is the output of permissions review --json.
type reviewJSON struct {
	Refused   int            `json:"refused"` // calls in all sessions
	Proposals []proposalJSON `json:"proposals"`
	Hopeless  []hopelessJSON `json:"hopeless"` // calls that no rule allows
	Written   []int          `json:"written"`  // numbers of proposals
}

type proposalJSON struct {
	Number    int              `json:"number"`
	Rule      permission.Rule  `json:"rule"`
	Allows    int              `json:"allows"` // number of refused calls that the rule allows
	Helps     int              `json:"helps"`  // number of others that it allows together with other proposed rules
	Overrides *permission.Rule `json:"overrides"`
	Covers    string           `json:"covers"` // other calls that the rule allows, as text
	Files     []string         `json:"files"`  // other files that the rule covers
}

type hopelessJSON struct {
	Permission permission.Name `json:"permission"`
	Subject    string          `json:"subject"`
	Times      int             `json:"times"`
	Reason     string          `json:"reason"`
}

func newReview(a *cli.App) *cobra.Command {
	var asJSON bool
	var write []string
	cmd := &cobra.Command{
		Use: "review", Short: "Propose rules for what agents were refused in past runs",
		Long: `Propose rules for what agents were refused in past runs: the narrowest that would allow
it, how many of the refused calls each allows, and what else it would allow. Three or more
similar files or commands become one rule with a pattern. Nothing is changed without
--write, which adds the rules of these numbers to your own configuration, where they
hold for all agents.`,
		Example: `  coven permissions review
  coven permissions review --write 1,3`,
		Args: cobra.NoArgs,
		RunE: a.InProject(func(cmd *cobra.Command, p *project.Project, _ []string) error {
			found, err := review(p)
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("write") {
				if err := found.write(cmd.Context(), p, write); err != nil {
					return err
				}
			}
			if asJSON {
				return a.PrintJSON(found)
			}
			return a.Printf("%s", found.page())
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().StringSliceVar(&write, "write", nil, "add the rules of these numbers, `N`,N, to your configuration")
	return cmd
}

// review analyzes the calls of all sessions.
func review(p *project.Project) (reviewJSON, error) {
	views, err := session.List(p.Repo.Root)
	if err != nil && len(views) == 0 {
		return reviewJSON{}, err
	}
	found := reviewJSON{Proposals: []proposalJSON{}, Hopeless: []hopelessJSON{}, Written: []int{}}
	refused, unreadable := refusals(views, agentsOf(p))
	for _, r := range refused {
		found.Refused += r.Times
	}
	for _, h := range unreadable {
		found.Refused += h.Times
	}
	proposals, none := permission.Propose(top, p.Config.Rules(), refused)
	files := filesOf(p.Repo.Root)
	for i, proposal := range proposals {
		found.Proposals = append(found.Proposals, described(i+1, proposal, refused, files))
	}
	for _, h := range slices.Concat(none, unreadable) {
		found.Hopeless = append(found.Hopeless, hopelessJSON{h.Permission, subjectOf(h.Request), h.Times, strings.ReplaceAll(h.Reason, top+"/", "")})
	}
	return found, nil
}

// refuser returns the refusal of a request to an agent of a session, without a count.
type refuser func(v session.View, req permission.Request) (permission.Refusal, bool)

// agentsOf returns the refuser of a project. It uses the rules in the plan of a session, and the current
// definition of the agent.
func agentsOf(p *project.Project) refuser {
	known := p.Agents()
	plans := map[string]*grimoires.Plan{}
	return func(v session.View, req permission.Request) (permission.Refusal, bool) {
		plan, read := plans[v.Dir]
		if !read {
			plan, _ = project.PlanOf(v.Dir) // without a plan, no agent is found
			plans[v.Dir] = plan
		}
		if plan == nil {
			return permission.Refusal{}, false
		}
		for _, name := range slices.Sorted(maps.Keys(plan.Agents)) {
			then := plan.Agents[name]
			if permission.OfPrimary(top, name, then.Permissions, then.Asks, plan.Rules).Decide(req).Allowed() {
				continue
			}
			found := permission.Refusal{Request: req, Agent: name, Own: then.Permissions, Asks: then.Asks}
			if now, err := known.Get(name); err == nil {
				found.Own, found.Asks = now.Permissions, now.RequiresApproval
			}
			return found, true
		}
		return permission.Refusal{}, false
	}
}

// refusals returns the refused calls of sessions without duplicates. unreadable are the calls whose records
// lack details, and those of reviewing agents, for which no rule allows anything.
func refusals(views []session.View, by refuser) (refused []permission.Refusal, unreadable []permission.Unresolvable) {
	for _, v := range slices.Backward(views) { // the oldest first
		for _, call := range v.Calls {
			if call.Allowed {
				continue
			}
			req, reason := requested(v.Task, call)
			one, found := permission.Refusal{Request: req}, false
			if reason == "" {
				one, found = by(v, req)
			}
			if found {
				refused = counted(refused, one)
				continue
			}
			unreadable = countedHopeless(unreadable, permission.Unresolvable{Refusal: permission.Refusal{Request: req}, Reason: cmp.Or(reason, call.Reason)})
		}
	}
	return refused, unreadable
}

// requested returns the request of a refused call, or the reason that its record is not sufficient.
func requested(task string, call event.Decision) (req permission.Request, reason string) {
	req = permission.Request{Permission: permission.Name(call.Permission), Subject: call.Subject}
	switch {
	case req.Permission == permission.Unknown:
		req.Subject, reason = call.Tool, "coven does not know this tool"
	case call.Subject == "":
		reason = call.Reason
	case strings.HasSuffix(call.Subject, "…"):
		reason = "the record has only its beginning"
	case req.Permission == permission.BashExecute:
		req.Command, req.Subject = call.Subject, ""
	case slices.Contains([]permission.Name{permission.FileRead, permission.FileWrite, permission.CodeSearch}, req.Permission):
		req.Path, req.Subject = inWorktree(task, call.Subject), ""
	}
	return req, reason
}

// counted counts a refusal, and adds it if it is new.
func counted(all []permission.Refusal, one permission.Refusal) []permission.Refusal {
	i := slices.IndexFunc(all, func(r permission.Refusal) bool { return r.Request == one.Request && r.Agent == one.Agent })
	if i < 0 {
		all, i = append(all, one), len(all)
	}
	all[i].Times++
	return all
}

func countedHopeless(all []permission.Unresolvable, one permission.Unresolvable) []permission.Unresolvable {
	i := slices.IndexFunc(all, func(h permission.Unresolvable) bool { return h.Request == one.Request && h.Reason == one.Reason })
	if i < 0 {
		all, i = append(all, one), len(all)
	}
	all[i].Times++
	return all
}

// inWorktree returns the path of a file below top, regardless of the worktree of its task.
func inWorktree(task, file string) string {
	if inside, ok := project.InWorktree(task, file); ok {
		return filepath.Join(top, inside)
	}
	if filepath.IsAbs(file) {
		return filepath.Clean(file)
	}
	return filepath.Join(top, file)
}

// subjectOf returns the subject of a request for people.
func subjectOf(r permission.Request) string {
	return strings.TrimPrefix(r.Subject+r.Command+r.Path, top+"/")
}

// maxFiles limits the number of files that a pattern is compared with.
const maxFiles = 100_000

// filesOf returns the files of the main checkout, relative to it.
func filesOf(root string) []string {
	var all []string
	_ = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error { // unreadable directories are not counted
		switch {
		case err != nil || len(all) >= maxFiles:
			return fs.SkipDir
		case e.IsDir() && (e.Name() == ".git" || path == filepath.Join(root, ".coven")):
			return fs.SkipDir
		case !e.IsDir():
			rel, _ := filepath.Rel(root, path) // it is below root
			all = append(all, rel)
		}
		return nil
	})
	return all
}

// described describes a proposal and the calls that it covers in addition to the refused ones.
func described(number int, p permission.Proposal, refused []permission.Refusal, files []string) proposalJSON {
	d := proposalJSON{Number: number, Rule: p.Rule, Allows: p.Allows, Helps: p.Helps, Overrides: p.Overrides, Covers: "nothing else", Files: []string{}}
	switch {
	case p.Exact:
	case p.Rule.Permission == permission.BashExecute:
		d.Covers = "every command that begins with " + strings.TrimSuffix(p.Rule.Pattern, " *")
	default:
		only := permission.Policy{Root: top, Layers: []permission.Layer{{Rules: []permission.Rule{{Permission: permission.FileWrite, Pattern: p.Rule.Pattern, Action: permission.Allow}}}}}
		for _, file := range files {
			path := filepath.Join(top, file)
			wasRefused := slices.ContainsFunc(refused, func(r permission.Refusal) bool { return r.Path == path })
			if !wasRefused && only.Decide(permission.Request{Permission: permission.FileWrite, Path: path}).Allowed() {
				d.Files = append(d.Files, file)
			}
		}
		d.Covers = oneline.Count(len(d.Files), "other file") + ", and new ones"
	}
	return d
}

// write appends proposed rules to the user's configuration.
func (f *reviewJSON) write(ctx context.Context, p *project.Project, words []string) error {
	rules := slices.Clone(p.Config.Permissions)
	var numbers []int
	if len(words) == 0 {
		return exit.Usagef("coven permissions review", "--write needs the number of a proposal")
	}
	for _, word := range words {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 || n > len(f.Proposals) {
			return exit.Usagef("coven permissions review", "there is no proposal %s", word)
		}
		numbers = append(numbers, n)
		r := f.Proposals[n-1].Rule
		rules = append(rules, config.Rule{Permission: string(r.Permission), Pattern: r.Pattern, Action: string(r.Action)})
	}
	var text strings.Builder
	for _, r := range rules {
		fmt.Fprintf(&text, "- {permission: %s", r.Permission)
		if r.Pattern != "" {
			fmt.Fprintf(&text, ", pattern: %s", strconv.QuoteToASCII(r.Pattern))
		}
		fmt.Fprintf(&text, ", action: %s}\n", r.Action)
	}
	_, err := p.Env.Set(ctx, config.SetRequest{Key: "permissions", Values: []string{text.String()}, User: true})
	if err == nil {
		f.Written = numbers
	}
	return err
}

// page returns the output of permissions review.
func (f reviewJSON) page() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s refused in past runs\n", oneline.Count(f.Refused, "call"))
	for _, p := range f.Proposals {
		fmt.Fprintf(&b, "\n%d  %s\n   allows %d of them", p.Number, terminal.Printable(p.Rule.String()), p.Allows)
		if p.Helps > 0 {
			fmt.Fprintf(&b, ", and %d with other rules", p.Helps)
		}
		fmt.Fprintf(&b, "; beside them: %s\n", terminal.Printable(p.Covers))
		if p.Overrides != nil {
			fmt.Fprintf(&b, "   overrides your rule %s\n", terminal.Printable(p.Overrides.String()))
		}
		if slices.Contains(f.Written, p.Number) {
			b.WriteString("   written to your configuration, for all agents\n")
		}
	}
	if len(f.Hopeless) > 0 {
		b.WriteString("\nno rule allows\n")
	}
	for _, h := range f.Hopeless {
		fmt.Fprintf(&b, "   %d  %s %s: %s\n", h.Times, h.Permission, terminal.Clip(terminal.Printable(oneline.Of(h.Subject)), 60), terminal.Printable(oneline.Of(h.Reason)))
	}
	if len(f.Proposals) > 0 && len(f.Written) == 0 {
		b.WriteString("\nnext: coven permissions review --write 1\n")
	}
	return b.String()
}
