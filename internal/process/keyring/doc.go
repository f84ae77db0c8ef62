// Package keyring refuses the keyrings of the Linux kernel to programs.
package keyring
