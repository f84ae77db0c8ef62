package project

// longestDir is the longest directory, in bytes, that leaves room for a private
// directory and the name of a socket in it: a socket's path has at most 107.
const longestDir = 48
