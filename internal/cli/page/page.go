// Package page holds the commands that show tasks outside of the terminal: web and open.
package page

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"rsc.io/qr"

	"github.com/coven-run/coven/internal/board"
	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/internal/web"
)

type webOptions struct {
	app       *cli.App
	listen    string
	cert, key string
	readOnly  bool
}

// NewWeb returns the command coven web.
func NewWeb(a *cli.App) *cobra.Command {
	o := &webOptions{app: a}
	cmd := &cobra.Command{
		Use:   "web [TASK]",
		Short: "Show all tasks on a page in your browser",
		Long: `Serve a page with the tasks of the repository until Ctrl-C: those that need you, those that run, those
that wait, and those that landed today. It shows the story, the findings and the costs of each, and
every button runs the command line that it names. Commands that the page has started go on when it ends.

The page listens on this machine only, and the printed address works for one login. With --listen
beyond this machine, it uses TLS: with your certificate, or with one that it makes, whose fingerprint it prints.`,
		Example: `  coven web
  coven web bd-12
  coven web --read-only
  coven web --listen 192.168.1.20:8443`,
		Args: cobra.MaximumNArgs(1), ValidArgsFunction: a.CompleteTasks(cli.Recorded),
		RunE: a.InProject(func(cmd *cobra.Command, p *project.Project, args []string) error {
			task := ""
			if len(args) == 1 {
				var err error
				if task, err = p.Resolve(cmd.Context(), args[0], project.Known); err != nil {
					return err
				}
			}
			return o.run(cmd.Context(), p, task)
		}),
	}
	cmd.Flags().StringVar(&o.listen, "listen", "127.0.0.1:0", "listen on `HOST:PORT`; port 0 is a free one")
	cmd.Flags().StringVar(&o.cert, "cert", "", "use the TLS certificate in `FILE`, in PEM")
	cmd.Flags().StringVar(&o.key, "key", "", "use the key of the certificate in `FILE`, in PEM")
	cmd.Flags().BoolVar(&o.readOnly, "read-only", false, "show everything, and change nothing")
	cli.Once(cmd, "listen", "cert", "key")
	return cmd
}

func (o *webOptions) run(ctx context.Context, p *project.Project, task string) (err error) {
	if (o.cert == "") != (o.key == "") {
		return exit.Usagef("coven web --help", "--cert and --key belong together")
	}
	host, _, err := net.SplitHostPort(o.listen)
	if err != nil {
		return exit.Usagef("coven web --listen 127.0.0.1:8080", "--listen %q is not HOST:PORT", o.listen)
	}
	private := p.Repo.OwnStatePath("private") // which the sandbox hides
	token, file, err := web.Token(private)
	if err != nil {
		return err
	}
	certificate, err := o.certificate(private, host)
	if err != nil {
		return err
	}
	source, err := o.source(ctx, p)
	if err != nil {
		return err
	}
	if err := source.Watch(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.listen)
	if err != nil {
		return exit.Usagef("coven web", "--listen %s: %w", o.listen, err)
	}
	address := addressOf(l.Addr(), host, certificate)
	logins := make(chan string, 1)
	told := newAnnouncer(o.app, p, source)
	s := web.New(web.Options{
		Source: source, Name: filepath.Base(p.Repo.Root), Token: token, Certificate: certificate, ReadOnly: o.readOnly,
		LoggedIn: func(from string) {
			select {
			case logins <- from:
			default: // the next address is printed anyway
			}
		},
		Changed: told.changed,
	})
	if err := o.printStart(s.LoginURL(address, task), file, certificate); err != nil {
		return errors.Join(err, l.Close())
	}
	served, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(served, l) }()
	go told.run(served, s.Watched)
	for {
		select {
		case sequence := <-told.sequences:
			_, _ = io.WriteString(o.app.Out, sequence) // a lost terminal needs no notice
		case err := <-ended:
			return err
		case from := <-logins:
			if err := o.app.Printf("login from %s; the next address:\n  %s\n", from, s.LoginURL(address, "")); err != nil {
				stop()
				return errors.Join(err, <-ended)
			}
		}
	}
}

func (o *webOptions) source(ctx context.Context, p *project.Project) (*board.Repository, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	dir, err := o.app.Workdir()
	return &board.Repository{Context: ctx, Project: p, Program: program, Dir: dir, Clock: o.app.Now, Explain: o.app.Fleet(p).Explain}, err
}

// certificate returns the certificate for a host to listen on, or nil if none is needed.
func (o *webOptions) certificate(private, host string) (*tls.Certificate, error) {
	if o.cert != "" {
		c, err := tls.LoadX509KeyPair(o.cert, o.key)
		if err != nil {
			return nil, exit.Usagef("coven web --help", "--cert and --key: %w", err)
		}
		return &c, nil
	}
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil, nil
	}
	hosts := []string{host}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		var err error
		if hosts, err = ownNames(); err != nil {
			return nil, err
		}
	}
	return web.Certificate(private, hosts, o.app.Now())
}

// ownNames returns the addresses and the name of this machine, loopback last.
func ownNames() ([]string, error) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("list the addresses of this machine: %w", err)
	}
	var names, loopback []string
	for _, a := range addresses {
		network, ok := a.(*net.IPNet)
		switch {
		case !ok || network.IP.IsLinkLocalUnicast():
		case network.IP.IsLoopback():
			loopback = append(loopback, network.IP.String())
		default:
			names = append(names, network.IP.String())
		}
	}
	if name, err := os.Hostname(); err == nil {
		names = append(names, name)
	}
	return append(names, append(loopback, "localhost")...), nil
}

// addressOf returns the host and port under which browsers reach the page.
func addressOf(at net.Addr, host string, c *tls.Certificate) string {
	_, port, err := net.SplitHostPort(at.String())
	if err != nil {
		return at.String()
	}
	if c != nil && c.Leaf.VerifyHostname(host) != nil {
		switch {
		case len(c.Leaf.DNSNames) > 0 && len(c.Leaf.IPAddresses) == 0:
			host = c.Leaf.DNSNames[0]
		case len(c.Leaf.IPAddresses) > 0:
			host = c.Leaf.IPAddresses[0].String()
		}
	}
	return net.JoinHostPort(host, port)
}

func (o *webOptions) printStart(address, file string, c *tls.Certificate) error {
	text := "the page of this repository, for one login:\n  " + address + "\n"
	if c != nil {
		text += "other machines can reach it: whoever logs in can run coven here as you" + map[bool]string{true: ", but this page is read-only"}[o.readOnly] + "\n" +
			"the SHA-256 fingerprint of its certificate, which your browser must show:\n  " + web.Fingerprint(c) + "\n"
		if o.app.Terminal {
			text += code(address)
		}
	}
	text += "or log in with the token in " + terminal.Printable(file) + "\nCtrl-C ends the page, but not the commands that it has started\n"
	return o.app.Printf("%s", text)
}

// code returns a QR code for a terminal: black on white, with two modules in each character.
func code(text string) string {
	const border = 2
	c, err := qr.Encode(text, qr.L)
	if err != nil {
		return "" // it is too long
	}
	var b strings.Builder
	for y := -border; y < c.Size+border; y += 2 {
		b.WriteString("\x1b[30;107m")
		for x := -border; x < c.Size+border; x++ {
			b.WriteString(map[[2]bool]string{{true, true}: "█", {true, false}: "▀", {false, true}: "▄"}[[2]bool{c.Black(x, y), c.Black(x, y+1)}])
			if !c.Black(x, y) && !c.Black(x, y+1) {
				b.WriteString(" ")
			}
		}
		b.WriteString("\x1b[m\n")
	}
	return b.String()
}
