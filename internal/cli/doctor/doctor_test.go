package doctor

import "testing"

func TestTilde(t *testing.T) {
	for _, test := range []struct{ text, home, want string }{
		{"/home/me/app, landing on main", "/home/me", "~/app, landing on main"},
		{"records over /home/me", "/home/me/", "records over ~"},
		{"not in (/home/me/x): /home/me/y", "/home/me", "not in (~/x): ~/y"},
		{"/home/me2/app and /mnt/home/me/app", "/home/me", "/home/me2/app and /mnt/home/me/app"},
		{"/home/m.e and /home/mye", "/home/m.e", "~ and /home/mye"},
		{"/etc", "", "/etc"},
		{"/etc", "/", "/etc"},
	} {
		if got := tilde(test.text, test.home); got != test.want {
			t.Errorf("tilde(%q, %q) = %q, want %q", test.text, test.home, got, test.want)
		}
	}
}
