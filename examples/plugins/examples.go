// Package examples embeds those files of the example plugins that new plugins in the same
// language take as they are.
package examples

import "embed"

// Files holds the implementations of the plugin protocol in Python and Node.js, and the
// pinned packages of the latter.
//
//go:embed reviewer-python/covenplugin.py
//go:embed reviewer-node/covenplugin.mjs reviewer-node/package.json reviewer-node/package-lock.json
var Files embed.FS
