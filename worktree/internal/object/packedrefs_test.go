package object

import (
	"regexp"
	"strings"
	"testing"
)

func TestIsID(t *testing.T) {
	id := regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)
	for _, c := range "/09:@AFG`afg" {
		for _, n := range []int{0, 39, 40, 41, 63, 64, 65} {
			if text := strings.Repeat(string(c), n); IsID(text) != id.MatchString(text) {
				t.Errorf("%q: %v", text, IsID(text))
			}
		}
	}
}
