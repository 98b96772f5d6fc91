package signature

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
)

// Text returns a public key as the settings have it: the base64 of its DER (PKIX), which is the line
// in its PEM.
func Text(key ed25519.PublicKey) string {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		panic(err) // only for another type of key
	}
	return base64.StdEncoding.EncodeToString(der)
}

// CheckPublicKey returns why a text is not the public key of the settings; "" is none. The error
// quotes nothing of it: it may be a private key, by mistake.
func CheckPublicKey(text string) error {
	if text == "" {
		return nil
	}
	_, err := ParsePublicKey(text)
	return err
}

// ParsePublicKey parses the public key of the settings.
func ParsePublicKey(text string) (ed25519.PublicKey, error) {
	const want = ": give the line that `monopod sign` prints"
	der, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	if err != nil {
		return nil, errors.New("is not the base64 of a public key" + want)
	}
	if _, err := x509.ParsePKCS8PrivateKey(der); err == nil {
		return nil, errors.New("is a private key, which belongs to whoever signs alone" + want)
	}
	key, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return nil, errors.New("is not the base64 of a public key" + want)
	}
	public, is := key.(ed25519.PublicKey)
	if !is {
		return nil, errors.New("is a public key of another type than ed25519" + want)
	}
	return public, nil
}

// NewKey returns a new private key and its file, PEM (PKCS #8).
func NewKey() (ed25519.PrivateKey, []byte, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make a key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, fmt.Errorf("make a key: %w", err)
	}
	return key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// ParsePrivateKey parses the file of a private key. The errors quote nothing of it.
func ParsePrivateKey(file []byte) (ed25519.PrivateKey, error) {
	block, _ := pem.Decode(file)
	if block == nil || block.Type != "PRIVATE KEY" {
		return nil, errors.New("holds no private key (PEM, PKCS #8): make one with --new-key")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("holds a private key that cannot be read: make one with --new-key")
	}
	private, is := key.(ed25519.PrivateKey)
	if !is {
		return nil, errors.New("holds a private key of another type than ed25519: make one with --new-key")
	}
	return private, nil
}
