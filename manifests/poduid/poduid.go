// Package poduid tells pods apart by their uids, and the contents of one pod by their hashes.
package poduid

import "strings"

// Rule describes a valid uid, for messages.
const Rule = "must be 1 to 63 letters, digits and '-'"

const characters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-"

// Valid reports whether a pod may have the uid. Names of folders and cgroups contain it, so it is
// part of a file name and of a systemd unit name, which has '_' in place of '-'. Without '/', '.'
// and '_' it cannot lead to another path or be mistaken for another uid.
func Valid(uid string) bool {
	return len(uid) >= 1 && len(uid) <= 63 && strings.Trim(uid, characters) == ""
}
