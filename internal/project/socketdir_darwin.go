package project

// longestDir is the longest directory, in bytes, that leaves room for a private
// directory and the name of a socket in it: a socket's path has at most 103.
const longestDir = 44
