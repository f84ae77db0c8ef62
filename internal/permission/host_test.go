package permission_test

import (
	"net/url"
	"testing"

	"github.com/coven-run/coven/internal/permission"
)

func TestHost(t *testing.T) {
	for text, want := range map[string]string{
		"https://Example.COM./a": "example.com", "http://example.com:8080": "example.com", "http://[::1]:80/": "::1",
		"ftp://example.com": "", "example.com": "", "http://": "", "http://a@example.com": "", "http://b\u00fccher.example": "", "http:///x": "",
		"http://\uff45xample.com": "", "file:///etc/passwd": "",
	} {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := permission.Host(u); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %s (%v)", text, got, err)
		}
	}
}
