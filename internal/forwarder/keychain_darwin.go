package forwarder

// inKeychain reports whether the CLI keeps logins in a keychain instead of a file.
const inKeychain = true
