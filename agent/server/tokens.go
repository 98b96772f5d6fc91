package server

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"regexp"

	"monopod/agent/disk"
)

// bearerToken is the form of a token in RFC 6750 (2.1).
var bearerToken = regexp.MustCompile(`^[A-Za-z0-9._~+/-]+=*$`)

// readTokens reads a file of tokens, one a line; empty lines and those that start
// with # are no tokens. A file that others than its owner can open is refused. The
// errors quote nothing of the file.
func readTokens(path string) ([][sha256.Size]byte, error) {
	data, mode, err := disk.ReadSecret(path)
	if err != nil {
		return nil, fmt.Errorf("tokens: %w", err)
	}
	if mode&0o077 != 0 {
		return nil, fmt.Errorf("tokens %s: others than its owner can open the file (mode %04o): chmod it to 0600", path, mode)
	}
	var all [][sha256.Size]byte
	line := 0
	for text := range bytes.Lines(data) {
		line++
		text = bytes.TrimSpace(text)
		if len(text) == 0 || text[0] == '#' {
			continue
		}
		if !bearerToken.Match(text) {
			return nil, fmt.Errorf("tokens %s:%d: a token stands alone on its line and is made of letters, digits and -._~+/", path, line)
		}
		all = append(all, sha256.Sum256(text))
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("tokens %s: the file holds none", path)
	}
	return all, nil
}
