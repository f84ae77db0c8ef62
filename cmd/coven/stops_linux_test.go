package main

import "golang.org/x/sys/unix"

// bytesWaiting is the request for the number of bytes in a pipe.
const bytesWaiting = unix.TIOCINQ
