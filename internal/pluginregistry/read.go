package pluginregistry

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/plugins"
	"github.com/coven-run/coven/plugins/provider"
)

const (
	// maxFile limits the size of a pinned plugin, in bytes: 256 MB.
	maxFile = 256_000_000
	maxHead = 4 << 10
)

// content describes the content of a plugin.
type content struct {
	size  int64
	hash  string
	lines int
	head  []byte
	can   provider.Declaration
}

// openBounded opens a file and checks its size.
func openBounded(file string, flags ...int) (*os.File, os.FileInfo, error) {
	f, err := regularfile.Open(file, flags...)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && info.Size() > maxFile {
		err = tooLarge()
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

func tooLarge() error { return fmt.Errorf("it is larger than %d MB", maxFile/1_000_000) }

// digest copies a file and returns a description of its content.
func digest(from io.Reader, to io.Writer) (content, error) {
	var c content
	hash, head, lines := sha256.New(), &beginning{}, &newlines{}
	n, err := io.Copy(io.MultiWriter(hash, head, lines, &c.can, to), io.LimitReader(from, maxFile+1))
	if err == nil && n > maxFile {
		err = tooLarge()
	}
	c.size, c.hash, c.head, c.lines = n, hex.EncodeToString(hash.Sum(nil)), head.bytes, lines.count
	return c, err
}

// beginning is a writer that keeps the first bytes.
type beginning struct{ bytes []byte }

func (b *beginning) Write(p []byte) (int, error) {
	b.bytes = append(b.bytes, p[:min(len(p), maxHead-len(b.bytes))]...)
	return len(p), nil
}

// newlines counts lines, including an incomplete last line.
type newlines struct {
	count int
	open  bool
}

func (n *newlines) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		if !n.open {
			n.count, n.open = n.count+1, true
		}
		i := bytes.IndexByte(rest, '\n')
		if i < 0 {
			break
		}
		rest, n.open = rest[i+1:], false
	}
	return len(p), nil
}

// read reads the plugin's file and stores its size, hash and header.
func (p *Plugin) read() error {
	f, _, err := openBounded(p.File)
	if err != nil {
		return fmt.Errorf("it cannot be read: %w", err)
	}
	defer f.Close() //nolint:errcheck // read only
	c, err := digest(f, io.Discard)
	if err != nil {
		return fmt.Errorf("it cannot be read: %w", err)
	}
	p.Size, p.SHA256, p.runner = c.size, c.hash, runnerOf(c.head)
	if bytes.HasPrefix(c.head, []byte("#!")) && bytes.IndexByte(c.head, 0) < 0 {
		p.Lines, p.Head = c.lines, readable(c.head)
	}
	if p.Kind == plugins.KindProvider {
		p.Capabilities, err = c.can.Capabilities()
	}
	return err
}

// readable returns the text without a truncated last character.
func readable(head []byte) string {
	for cut := 0; cut < utf8.UTFMax && len(head) == maxHead && !utf8.Valid(head); cut++ {
		head = head[:len(head)-1]
	}
	return strings.ToValidUTF8(string(head), "\uFFFD")
}
