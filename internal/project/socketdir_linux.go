package project

// maxSocketDir is the length of the longest directory, in bytes, that leaves room for a
// private directory and the name of a socket in it. The path of a socket has at most 107.
const maxSocketDir = 48
