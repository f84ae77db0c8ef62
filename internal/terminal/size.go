package terminal

import "fmt"

// Size formats a number of bytes for people: 999 B, 1.5 kB, 12 MB.
func Size(bytes int64) string {
	if bytes < 1000 {
		return fmt.Sprintf("%d B", bytes)
	}
	value, unit := float64(bytes), -1
	for ; value >= 999.5 && unit < len("kMGTPE")-1; unit++ {
		value /= 1000
	}
	if value < 9.95 {
		return fmt.Sprintf("%.1f %cB", value, "kMGTPE"[unit])
	}
	return fmt.Sprintf("%.0f %cB", value, "kMGTPE"[unit])
}
