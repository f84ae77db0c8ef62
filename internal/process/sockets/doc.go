// Package sockets finds the sockets of the user's running programs.
package sockets
