package cli

import (
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/urfave/cli/v2"

	"monopod/manifests"
)

// fillOf returns the values from flags for places that manifests leave open. Of a name given twice
// the last value counts, and those of --env come after those of files.
func fillOf(c *cli.Context) (*manifests.Fill, error) {
	fill := &manifests.Fill{Values: map[string]*string{}, Images: map[string]string{}}
	for _, path := range c.StringSlice("env-file") {
		if err := fromFile(fill, path); err != nil {
			return nil, fmt.Errorf("--env-file: %w", err)
		}
	}
	for _, text := range c.StringSlice("env") {
		if err := value(fill, text); err != nil {
			return nil, fmt.Errorf("--env %w", err)
		}
	}
	for _, text := range c.StringSlice("set") {
		name, image, ok := strings.Cut(text, "=")
		if !ok || name == "" || image == "" {
			return nil, fmt.Errorf("--set %q: write CONTAINER=IMAGE", text)
		}
		fill.Images[name] = image
	}
	return fill, nil
}

// value reads NAME=VALUE, or NAME for its value in the environment.
func value(fill *manifests.Fill, text string) error {
	name, is, given := strings.Cut(text, "=")
	if !variable.MatchString(name) {
		return fmt.Errorf("%q: write NAME=VALUE, or NAME for that of the environment", text)
	}
	if !given {
		is, given = os.LookupEnv(name)
	}
	fill.Values[name] = nil
	if given {
		fill.Values[name] = &is
	}
	return nil
}

// variable is the form of names that can be given values.
var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)

// fromFile reads the values of a file; empty lines and those that begin with # are none.
func fromFile(fill *manifests.Fill, path string) error {
	data, err := manifests.ReadFile(path)
	if err != nil {
		return err
	}
	for k, line := range strings.Split(string(data), "\n") {
		line = strings.TrimSuffix(line, "\r")
		if text := strings.TrimSpace(line); text == "" || text[0] == '#' {
			continue
		}
		if err := value(fill, line); err != nil {
			return fmt.Errorf("%s:%d: %w", path, k+1, err)
		}
	}
	return nil
}
