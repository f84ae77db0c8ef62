package project

// maxSocketDir is the maximum length of the directory, in bytes, that leaves room for a
// private directory and the name of a socket. The path of a socket has at most 107 bytes.
const maxSocketDir = 48
