package protected

import "syscall"

// changeTime returns the time of the last change of a file or its metadata, in nanoseconds.
func changeTime(s *syscall.Stat_t) int64 { return s.Ctimespec.Nano() }
