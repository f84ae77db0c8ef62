package protected

import "syscall"

// changeTime returns when the kernel last saw a change, in nanoseconds.
func changeTime(s *syscall.Stat_t) int64 { return s.Ctim.Nano() }
