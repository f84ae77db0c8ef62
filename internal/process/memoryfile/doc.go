// Package memoryfile makes files that no directory contains.
package memoryfile
