// Package signature proves that the holder of a key signed the manifests of a URL.
package signature

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
)

const (
	// Suffix is what the name of a signature has behind that of the content.
	Suffix = ".sig"
	// MaxSize is more than the file of a signature has, in bytes.
	MaxSize = 1 << 10
)

// domain is signed in front of the content: a signature of anything else that was made with the
// same key is none of manifests.
const domain = "monopod-manifests-v1\n"

var (
	errForm = errors.New("is no line of base64 as `monopod sign` writes it: sign the content again")
	// ErrOther is returned for a signature of other content, or by another key.
	ErrOther = errors.New("is not of this content by the key of manifestURLPublicKey: " +
		"sign the content with that key, and upload the signature before the content")
)

// Sign returns the file of a signature: one line of base64.
func Sign(key ed25519.PrivateKey, content []byte) []byte {
	made := ed25519.Sign(key, message(content))
	return append(base64.StdEncoding.AppendEncode(nil, made), '\n')
}

// Verify returns why a signature's file does not prove that the holder of the key signed the
// content. The errors follow the word "signature".
func Verify(key ed25519.PublicKey, content, file []byte) error {
	made, err := base64.StdEncoding.DecodeString(string(bytes.TrimSpace(file)))
	if err != nil || len(made) != ed25519.SignatureSize {
		return errForm
	}
	if !ed25519.Verify(key, message(content), made) {
		return ErrOther
	}
	return nil
}

func message(content []byte) []byte { return append([]byte(domain), content...) }
