package podspec

import (
	"errors"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// EnvFile names a file in an emptyDir from which variables get their values (fileKeyRef).
type EnvFile struct{ Volume, Path string }

// EnvFileContent is the content of such a file, or why it cannot be read.
type EnvFileContent struct {
	Data []byte
	Err  error
}

// EnvFilesOf returns the files from which a container's variables get their values.
func EnvFilesOf(c *v1.Container) (all []EnvFile) {
	for _, v := range c.Env {
		if v.ValueFrom != nil && v.ValueFrom.FileKeyRef != nil {
			all = append(all, envFileOf(v.ValueFrom.FileKeyRef))
		}
	}
	return all
}

func envFileOf(r *v1.FileKeySelector) EnvFile { return EnvFile{r.VolumeName, r.Path} }

// fileValue returns the value of a key in a file. As with a kubelet the file must be there and be
// well formed even if the key is optional.
func fileValue(in Input, r *v1.FileKeySelector) (string, error) {
	file := in.EnvFiles[envFileOf(r)]
	if file.Err != nil {
		return "", fmt.Errorf("couldn't parse env file: %s of volume %s: %w", r.Path, r.VolumeName, file.Err)
	}
	values, err := parseEnvFile(string(file.Data))
	if err != nil {
		return "", fmt.Errorf("couldn't parse env file: %s of volume %s: %w", r.Path, r.VolumeName, err)
	}
	value, has := values[r.Key]
	switch {
	case has:
		return value, nil
	case r.Optional != nil && *r.Optional:
		return "", errOptional
	}
	return "", fmt.Errorf("environment variable key %q not found in file %s of volume %s", r.Key, r.Path, r.VolumeName)
}

// parseEnvFile reads the variables of an env file, which is a part of what a POSIX shell reads:
// NAME='value', with spaces before the name and around "=", values that may have several lines,
// blank lines, and lines that begin with "#". Of two variables of one name the last counts, as in a
// shell. Errors quote nothing of the file. The format: "Env file syntax" of the Kubernetes docs.
func parseEnvFile(text string) (map[string]string, error) {
	values := map[string]string{}
	for line := 1; text != ""; {
		start := strings.TrimLeft(text, " \t\r")
		if start == "" || start[0] == '\n' || start[0] == '#' {
			_, text, _ = strings.Cut(text, "\n")
			line++
			continue
		}
		name, value, rest, err := envVariable(start)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		values[name] = value
		line += strings.Count(text[:len(text)-len(rest)], "\n")
		text = rest
	}
	return values, nil
}

// envVariable reads one variable, and returns what is behind its line.
func envVariable(text string) (name, value, rest string, err error) {
	name, rest, found := strings.Cut(text, "=")
	if !found || strings.Contains(name, "\n") {
		return "", "", "", errors.New("want NAME='value'")
	}
	if name = strings.TrimRight(name, " \t"); !isEnvKey(name) {
		return "", "", "", errors.New("the name before = must be 1 to 128 printable ASCII characters")
	}
	rest, quoted := strings.CutPrefix(strings.TrimLeft(rest, " \t"), "'")
	if !quoted {
		return "", "", "", errors.New("the value must stand in single quotes")
	}
	value, rest, closed := strings.Cut(rest, "'")
	if !closed {
		return "", "", "", errors.New("the quote of the value is not closed")
	}
	behind, rest, _ := strings.Cut(rest, "\n")
	if strings.TrimSpace(behind) != "" {
		return "", "", "", errors.New("nothing may stand behind the quoted value")
	}
	return name, value, rest, nil
}

// mostEnvKey is the longest key, as of k8s.io/api's FileKeySelector.
const mostEnvKey = 128

// isEnvKey reports whether a key of an env file is printable ASCII without "=".
func isEnvKey(key string) bool {
	isOther := func(r rune) bool { return r <= ' ' || r > '~' || r == '=' }
	return key != "" && len(key) <= mostEnvKey && !strings.ContainsFunc(key, isOther)
}
