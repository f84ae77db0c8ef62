package egress

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func TestParsePattern(t *testing.T) {
	for text, want := range map[string]string{
		"example.com": "example.com", "Example.COM.": "example.com", "*.Example.com": "*.example.com",
		"example.com:8443": "example.com:8443", "localhost": "localhost", "my_host.corp:0080": "my_host.corp:80",
		"bücher.example": "xn--bcher-kva.example", "*.bücher.example:81": "*.xn--bcher-kva.example:81", "faß.de": "xn--fa-hia.de",
		"10.0.0.5": "10.0.0.5", "127.0.0.1:5000": "127.0.0.1:5000", "::1": "[::1]", "[::1]:80": "[::1]:80", "[FD00::5]": "[fd00::5]",
		"::ffff:10.0.0.5": "10.0.0.5", "１２７.0.0.1": "127.0.0.1",
	} {
		p, err := ParsePattern(text)
		if err != nil || p.String() != want {
			t.Errorf("%s: %s %v, want %s", text, p, err, want)
			continue
		}
		if again, err := ParsePattern(p.String()); err != nil || again != p {
			t.Errorf("%s is read as %s %v", p, again, err)
		}
	}
}

func TestParsePatternErrors(t *testing.T) {
	for text, want := range map[string]string{
		"": "it is empty", " example.com": "white space", "https://example.com": "it is a URL", "example.com/path": "paths",
		"10.0.0.0/8": "networks", "user@example.com": "a user name", "*": "every host", "*:443": "every host", "*.": "missing",
		"a.*.com": "in front of the first dot", "foo*.com": "in front of the first dot", "**.com": "in front of the first dot",
		"example.com:": "the port is missing", "example.com:0": `the port "0"`, "example.com:65536": `the port "65536"`,
		"example.com:http": `the port "http"`, "example.com:+80": `the port "+80"`, "a..b": "1 to 63 characters",
		strings.Repeat("a", 64) + ".com": "1 to 63 characters", strings.Repeat("a.", 127) + "com": "253", "-a.com": "do not begin",
		"a b.com": `cannot contain ' '`, "a\x00.com": `cannot contain '\x00'`, "*.10.0.0.5": "no subdomains", "[::1": "brackets",
		"[example.com]": "brackets", "fe80::1%eth0": "zone", "169.254.169.254": "never allowed", "[fe80::1]:80": "never allowed",
		"0.0.0.0": "never allowed", "::": "never allowed", "224.0.0.1": "never allowed", "2130706433": "valid address",
		"0x7f000001": "valid address", "127.1": "valid address", "0177.0.0.1": "valid address", "0x7f.0.0.1": "valid address",
		"1.2.3.4.5": "valid address", "x.0x1f": "valid address", "\xff\xfe.com": "international", "example.com:80:80": "valid address",
	} {
		_, err := ParsePattern(text)
		var typed *PatternError
		if !errors.As(err, &typed) || typed.Pattern != text || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		pattern, host string
		port          uint16
		want          bool
	}{
		{"example.com", "EXAMPLE.com.", 443, true},
		{"example.com", "example.com", 80, true},
		{"example.com", "example.com", 22, false},
		{"example.com", "example.com", 8443, false},
		{"example.com", "www.example.com", 443, false},
		{"example.com", "example.com.evil.net", 443, false},
		{"example.com", "notexample.com", 443, false},
		{"example.com:8443", "example.com", 8443, true},
		{"example.com:8443", "example.com", 443, false},
		{"*.example.com", "a.example.com", 443, true},
		{"*.example.com", "a.b.example.com", 443, true},
		{"*.example.com", "example.com", 443, false},
		{"*.example.com", "aexample.com", 443, false},
		{"xn--bcher-kva.example", "BÜCHER.example", 443, true},
		{"10.0.0.5", "::ffff:10.0.0.5", 443, true},
		{"10.0.0.5", "10.0.0.50", 443, false},
		{"::1", "[0:0::1]", 443, true},
	} {
		h, err := parseHost(c.host)
		if err != nil {
			t.Errorf("%s: %v", c.host, err)
		}
		if got := patterns(t, c.pattern)[0].matches(h, c.port); got != c.want {
			t.Errorf("%s matches %s:%d: %v", c.pattern, c.host, c.port, got)
		}
	}
}

func TestKindOf(t *testing.T) {
	for want, addrs := range map[kind]string{
		public: "1.1.1.1 140.82.112.3 2606:4700::1111 64:ff9b::101:101 2002:101:101::1 172.32.0.1",
		private: "127.0.0.1 127.8.8.8 10.0.0.1 172.16.0.1 192.168.1.1 100.64.0.1 100.100.100.200 198.18.0.1 240.0.0.1 ::1 fd00::1 " +
			"fd00:ec2::254 ::ffff:127.0.0.1 64:ff9b::7f00:1 2002:7f00:1::1 ::127.0.0.1 fec0::1",
		never: "169.254.169.254 0.0.0.0 0.1.2.3 255.255.255.255 224.0.0.1 :: fe80::1 ff02::1 ::ffff:169.254.169.254 ::ffff:0.0.0.0 " +
			"64:ff9b::a9fe:a9fe 2002:a9fe:a9fe::1 ::169.254.169.254",
	} {
		for _, text := range strings.Fields(addrs) {
			if got := kindOf(netip.MustParseAddr(text)); got != want {
				t.Errorf("%s: %d, want %d", text, got, want)
			}
		}
	}
}

func TestLocalPorts(t *testing.T) {
	var list []Pattern
	for _, text := range []string{"example.com:1", "localhost:5432", "*.localhost:2", "127.0.0.1:8080", "10.0.0.1:3", "localhost"} {
		p, err := ParsePattern(text)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
	if got := LocalPorts(list); !slices.Equal(got, []int{5432, 8080, 80, 443}) {
		t.Errorf("the ports are %v", got)
	}
}

// The normalized form of an accepted pattern parses to the same pattern.
func FuzzParsePattern(f *testing.F) {
	for _, text := range []string{"example.com", "*.a.b:80", "[::1]:8", "bücher.example", "１.2.3.4", "0x7f.1", "a:b:c"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePattern(text)
		if err != nil {
			return
		}
		again, err := ParsePattern(p.String())
		if err != nil || again != p {
			t.Errorf("%q is %q, which is %q, %v", text, p, again, err)
		}
		if p.host.addr.IsValid() && kindOf(p.host.addr) == never {
			t.Errorf("%q allows %s", text, p)
		}
	})
}
