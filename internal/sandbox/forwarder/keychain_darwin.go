package forwarder

// inKeychain reports whether the CLI stores logins in a keychain instead of a file.
const inKeychain = true
