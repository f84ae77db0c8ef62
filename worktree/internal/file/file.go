// Package file reads, writes, copies and removes files at paths where an agent may have put something else:
// a link, a pipe, a directory, or a file of any size.
//
// Read, Open and CopyRegular accept only regular files and do not follow a link in the last element of a
// path. A Root follows no link at all, for files that an agent may replace at the same time. The other
// functions are for paths that only coven and the user can write.
package file
