package image

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// dockerEntry is one registry of a docker config. auth, base64 of
// "user:password", wins over the other two.
type dockerEntry struct {
	Username string `json:"username"`
	Password string `json:"password"`
	Auth     string `json:"auth"`
}

// parseConfig reads the credentials of a config.json: {"auths": {key: entry}}.
// Its errors name no value of the file.
func parseConfig(data []byte) ([]entry, error) {
	var file struct {
		Auths map[string]dockerEntry `json:"auths"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, withoutValues(err)
	}
	return entries(file.Auths)
}

// parseLegacy reads the credentials of a .dockercfg: {key: entry}.
func parseLegacy(data []byte) ([]entry, error) {
	var file map[string]dockerEntry
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, withoutValues(err)
	}
	return entries(file)
}

func entries(all map[string]dockerEntry) ([]entry, error) {
	var out []entry
	for key, e := range all {
		auth, err := e.auth()
		if err != nil {
			return nil, fmt.Errorf("entry %s: %w", key[strings.LastIndex(key, "@")+1:], err)
		}
		// A key that is no registry matches none, and an entry that is empty (its credentials are
		// in a store) has no credentials.
		if p, err := parsePattern(key); err == nil && auth != (Auth{}) {
			out = append(out, entry{p, auth})
		}
	}
	return out, nil
}

func (e dockerEntry) auth() (Auth, error) {
	if e.Auth == "" {
		return Auth{e.Username, e.Password}, nil
	}
	pair, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(strings.TrimSpace(e.Auth), "="))
	if err != nil {
		return Auth{}, errors.New("auth is not base64")
	}
	user, password, ok := strings.Cut(string(pair), ":")
	if !ok {
		return Auth{}, errors.New("auth is not base64 of user:password")
	}
	return Auth{user, password}, nil
}

// withoutValues describes a JSON error without quoting any value.
func withoutValues(err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("it is not JSON: error at byte %d", syntax.Offset)
	case errors.As(err, &kind):
		return fmt.Errorf("it is no docker config: wrong kind of value at byte %d", kind.Offset)
	}
	return errors.New("it is no docker config")
}

// secretAuths returns the credentials for a repository that a pod's own Secrets hold. Secrets of
// another type, and unreadable ones, hold none.
func secretAuths(secrets []*v1.Secret, repository string) []Auth {
	var all []entry
	for _, s := range secrets {
		found, err := secretEntries(s)
		if err == nil {
			all = append(all, found...)
		}
	}
	return matching(all, repository)
}

// CheckSecret returns why a Secret holds no credentials for registries, nil if
// it does. The error names no value of the Secret.
func CheckSecret(s *v1.Secret) error {
	_, err := secretEntries(s)
	return err
}

func secretEntries(s *v1.Secret) ([]entry, error) {
	var found []entry
	err := fmt.Errorf("type %q holds no credentials for registries", s.Type)
	switch s.Type {
	case v1.SecretTypeDockerConfigJson:
		found, err = parseConfig(s.Data[v1.DockerConfigJsonKey])
	case v1.SecretTypeDockercfg:
		found, err = parseLegacy(s.Data[v1.DockerConfigKey])
	}
	if err != nil {
		return nil, fmt.Errorf("secret %s/%s: %w", s.Namespace, s.Name, err)
	}
	return found, nil
}
