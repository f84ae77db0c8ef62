package disk

import "testing"

func TestSize(t *testing.T) {
	for bytes, want := range map[int64]string{
		0: "0 B", 999: "999 B", 1000: "1 kB", 1049: "1 kB", 1250: "1.2 kB", 9949: "9.9 kB", 9950: "10 kB", 999_499: "999 kB",
		999_500: "1 MB", 3_100_000: "3.1 MB", 412_000_000: "412 MB", 1_200_000_000: "1.2 GB", 5_000_000_000_000_000: "5000 TB",
	} {
		if got := size(bytes); got != want {
			t.Errorf("%d: %s, want %s", bytes, got, want)
		}
	}
}
