package egress

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
)

// tunnel connects the program to the target and copies data in both directions.
func (p *Proxy) tunnel(w http.ResponseWriter, r *http.Request, t target, mayBePrivate bool) {
	up, err := p.connect(r.Context(), "https", t, mayBePrivate)
	if err != nil {
		p.fail(w, r, t, err)
		return
	}
	defer up.Close() //nolint:errcheck // its bytes were copied or cannot be
	hijacked, buffer, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return // the program is gone
	}
	client := hijacked.(*conn)
	defer client.Close() //nolint:errcheck // its bytes were copied or cannot be
	defer context.AfterFunc(client.ctx, func() { _ = up.Close() })()
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	early, err := buffer.Peek(buffer.Reader.Buffered())
	if err != nil {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		pipe(up, io.MultiReader(bytes.NewReader(early), client), client)
	}()
	pipe(client, up, up)
	<-done
}

// pipe copies until the end of from. It then signals the end to to. After an error, it closes
// both connections, which ends the other direction.
func pipe(to net.Conn, from io.Reader, source io.Closer) {
	_, err := io.Copy(to, from)
	if half, ok := to.(interface{ CloseWrite() error }); err == nil && ok && half.CloseWrite() == nil {
		return
	}
	_ = to.Close()
	_ = source.Close()
}

// connect connects to the target, through the user's proxy if there is one for the
// target and the scheme, which is http or https.
func (p *Proxy) connect(ctx context.Context, scheme string, t target, mayBePrivate bool) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, p.limits.ConnectTimeout)
	defer cancel()
	proxy, err := p.upstream.choose(&url.URL{Scheme: scheme, Host: t.host.dial(t.port)})
	if err != nil {
		return nil, err
	}
	if proxy != nil {
		return p.upstream.connect(ctx, proxy, t)
	}
	return p.dial(ctx, t, mayBePrivate)
}

// dial connects directly to the target. It checks each address immediately before connecting,
// without resolving the name again.
func (p *Proxy) dial(ctx context.Context, t target, mayBePrivate bool) (net.Conn, error) {
	d := net.Dialer{Resolver: p.resolver}
	d.ControlContext = func(_ context.Context, _, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("check the address %s: %w", address, err)
		}
		if netip.AddrPortFrom(to.Addr().Unmap(), to.Port()) == p.address {
			return &refusal{t, "it is coven's network proxy", false}
		}
		return t.checkAddr(to.Addr(), mayBePrivate)
	}
	c, err := d.DialContext(ctx, "tcp", t.host.dial(t.port))
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, fmt.Errorf("no connection after %s", p.limits.ConnectTimeout)
	}
	return c, err
}
