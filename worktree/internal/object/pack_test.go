package object

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
)

// A pack has the objects that git finds in it, also with offsets of 64 bits. Other formats and damage are left to git.
func TestPack(t *testing.T) {
	dir := t.TempDir()
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
			"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	git("init", "-q")
	lines := strings.Split(strings.Repeat("line\n", 2000), "\n")
	for i := range 20 {
		lines[i*90] = fmt.Sprint("other ", i)
		if err := os.WriteFile(filepath.Join(dir, "file"), []byte(strings.Join(lines, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
		git("add", "file")
		git("commit", "-qm", fmt.Sprint(i))
	}
	git("-c", "repack.useDeltaBaseOffset=false", "repack", "-adfq")
	ids := strings.Fields(git("cat-file", "--batch-check=%(objectname)", "--batch-all-objects"))
	read := func(id string) (body []byte, size int64, err error) {
		err = Open(filepath.Join(dir, ".git")).use(func(s *Storage) error {
			size, err = s.size(plumbing.NewHash(id))
			if err == nil {
				_, body, err = s.body(plumbing.NewHash(id))
			}
			return err
		})
		return body, size, err
	}
	alike := func(pack string) {
		t.Helper()
		for _, id := range ids {
			kind := strings.TrimSpace(git("cat-file", "-t", id))
			body, size, err := read(id)
			if err != nil || string(body) != git("cat-file", kind, id) || fmt.Sprintln(size) != git("cat-file", "-s", id) {
				t.Errorf("%s, %s: %d bytes, %v", pack, id, size, err)
			}
		}
		if _, _, err := read(strings.Repeat("0", 40)); !errors.Is(err, plumbing.ErrObjectNotFound) {
			t.Errorf("%s, none: %v", pack, err)
		}
	}
	alike("deltas from IDs")
	git("repack", "-adfq")
	packs, err := filepath.Glob(filepath.Join(dir, ".git/objects/pack/*.pack"))
	if err != nil || len(packs) != 1 {
		t.Fatalf("%v, %v", packs, err)
	}
	index := strings.TrimSuffix(packs[0], ".pack") + ".idx"
	for _, version := range []string{"2", "2,100"} {
		git("index-pack", "--index-version="+version, "-o", index, packs[0])
		alike("index version " + version)
	}
	whole, err := os.ReadFile(index)
	if err != nil {
		t.Fatal(err)
	}
	git("index-pack", "--index-version=1", "-o", index, packs[0])
	if _, _, err := read(ids[0]); !errors.Is(err, ErrUnsupported) {
		t.Errorf("version 1: %v", err)
	}
	for name, damaged := range map[string][]byte{
		"empty": nil, "header": whole[:100], "IDs": whole[:1040], "offsets": whole[:len(whole)-40-60*8-60*4],
		"order": append(append([]byte(indexHeader), 9), whole[9:]...),
	} {
		if err := errors.Join(os.Remove(index), os.WriteFile(index, damaged, 0o600)); err != nil {
			t.Fatal(err)
		}
		if _, _, err := read(ids[len(ids)-1]); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// Objects in a damaged pack that differ from each other, and deltas of something else, are errors.
func TestDamagedPack(t *testing.T) {
	deflated := func(content string) []byte {
		var out bytes.Buffer
		w := zlib.NewWriter(&out)
		if _, err := w.Write([]byte(content)); err != nil || w.Close() != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	a, b := plumbing.NewHash(strings.Repeat("a", 40)), plumbing.NewHash(strings.Repeat("b", 40))
	from := func(base plumbing.Hash, delta string) []byte {
		return slices.Concat([]byte{byte(plumbing.REFDeltaObject)<<4 | byte(len(delta))}, base[:], deflated(delta))
	}
	for name, objects := range map[string][2][]byte{
		"cycle":   {from(b, "\x03\x03\x90\x03"), from(a, "\x03\x03\x90\x03")},
		"missing": {from(plumbing.ZeroHash, "\x03\x03\x90\x03"), nil},
		"length":  {{byte(plumbing.BlobObject)<<4 | 5}, deflated("four")},
		"size":    {from(a, "\xff"), nil},
		"kind":    {slices.Concat([]byte{5<<4 | 4}, deflated("four")), nil},
		"large":   {from(b, "\x03\x81\x80\x80\x04\x90\x03"), slices.Concat([]byte{byte(plumbing.BlobObject)<<4 | 3}, deflated("abc"))},
		"huge":    {{byte(plumbing.BlobObject)<<4 | 0x80, 0xff, 0xff, 0xff, 0x7f}, nil},
	} {
		dir := t.TempDir()
		at := filepath.Join(dir, "objects", "pack")
		index := []byte(indexHeader)
		for first := range 256 {
			n := uint32(0)
			if first >= 0xaa {
				n++
			}
			if first >= 0xbb {
				n++
			}
			index = binary.BigEndian.AppendUint32(index, n)
		}
		index = slices.Concat(index, a[:], b[:], make([]byte, 8)) // checksums
		index = binary.BigEndian.AppendUint32(index, 0)
		index = binary.BigEndian.AppendUint32(index, uint32(len(objects[0])))
		if err := errors.Join(os.MkdirAll(at, 0o700), os.WriteFile(filepath.Join(at, "p.idx"), index, 0o600),
			os.WriteFile(filepath.Join(at, "p.pack"), slices.Concat(objects[0], objects[1]), 0o600)); err != nil {
			t.Fatal(err)
		}
		p, err := openPack(dir, "objects/pack/p")
		if err != nil {
			t.Fatal(err)
		}
		p.bases = cache.NewBufferLRU(maxCached)
		if o, err := p.object(a); err == nil || isMissing(err) || name == "large" && !errors.Is(err, ErrUnsupported) {
			t.Errorf("%s: %v, %v", name, o, err)
		}
		if size, err := p.size(a); name == "size" && err == nil {
			t.Errorf("%s: %d", name, size)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}
