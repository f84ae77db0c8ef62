package fakescreen

import "testing"

func TestWindow(t *testing.T) {
	for name, c := range map[string]struct {
		truncates bool
		text      string
		width     int // after the text
		after     string
		want      string
	}{
		"lines":              {text: "one\r\ntwo", width: 10, want: "one\ntwo\n"},
		"overwritten":        {text: "one\rtw", width: 10, want: "twe\n"},
		"wrapped":            {text: "0123456789ab", width: 10, want: "0123456789\nab\n"},
		"exactly full":       {text: "0123456789\r\nab", width: 10, want: "0123456789\nab\n"},
		"up into a wrapped":  {text: "0123456789ab\r\nc\x1b[1A\rx", width: 10, want: "0123456789\nxb\nc\n"},
		"erased below":       {text: "one\r\ntwo\r\nthree\x1b[2A\r\x1b[J", width: 10, want: "\n"},
		"sequences":          {text: "\x1b[?25l\x1b[1mone\x1b[m\x1b=", width: 10, want: "one\n"},
		"notifications":      {text: "one\x1b]9;text\atwo\x1b]99;;text\x1b\\\x1b]0;title\x1b\\3", width: 10, want: "onetwo3\n"},
		"wide":               {text: "日本語日本x", width: 10, want: "日本語日本\nx\n"},
		"narrower, wraps":    {text: "012345678\r\nx\x1b[1A\r", width: 5, after: "y", want: "y1234\n5678\nx\n"},
		"narrower, cut off":  {truncates: true, text: "012345678\r\nx\x1b[1A\r", width: 5, after: "y", want: "y1234\nx\n"},
		"only the last rows": {text: "1\r\n2\r\n3\r\n4\r\n5", width: 10, want: "2\n3\n4\n5\n"},
	} {
		w := New(10, 4)
		w.Truncates = c.truncates
		for i := range len(c.text) { // in pieces of one byte
			_, _ = w.Write([]byte(c.text[i : i+1]))
		}
		w.Resize(c.width, 4)
		_, _ = w.Write([]byte(c.after))
		if got := w.Text(); got != c.want {
			t.Errorf("%s:\ngot  %q\nwant %q", name, got, c.want)
		}
		if w.CursorHidden() != (name == "sequences") {
			t.Errorf("%s: the cursor is hidden: %v", name, w.CursorHidden())
		}
	}
}
