package main

// bytesWaiting is the request for the number of bytes in a pipe, FIONREAD, which package unix lacks for
// macOS.
const bytesWaiting = 0x4004667f
