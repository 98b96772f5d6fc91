package command

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"monopod/manifests/decode"
)

// line is the words behind a command's name, separated by the flags that the command declares. The
// library accepts no flags behind arguments, no value that is joined to a letter (-ojson), and not
// both names of one flag.
type line struct {
	command *cli.Command
	flags   []string // as --name=value
	args    []string
	dash    int      // args before "--"; -1: there was none
	help    bool     // it is requested
	open    cli.Flag // the flag whose value is missing
}

// take reads the first word, with the second if that is its value, and returns the others. It
// leaves out what it rejects.
func (l *line) take(words []string) (rest []string, err error) {
	word, rest := words[0], words[1:]
	name, value, joined := strings.Cut(word, "=")
	switch {
	case word == "--":
		l.dash, l.args = len(l.args), append(l.args, rest...)
		return nil, nil
	case word == "-" || !strings.HasPrefix(word, "-"):
		l.args = append(l.args, word)
		return rest, nil
	case word[1] != '-' && len(word) > 2: // -ojson, -o=json, -it
		name, value, joined = word[:2], strings.TrimPrefix(word[2:], "="), true
		if f := flagOf(l.command, name); f != nil && !takesValue(f) && word[2] != '=' {
			value, rest = "true", slices.Concat([]string{"-" + word[2:]}, rest)
		}
	}
	f := flagOf(l.command, name)
	switch {
	case f == nil && (name == "--help" || name == "-h"):
		l.help = true
		return nil, nil
	case f == nil && ownFlag(l.command, name) != "":
		return rest, errors.New(ownFlag(l.command, name))
	case f == nil && len(name) == 2 && name != "--":
		return rest, fmt.Errorf("unknown shorthand flag: %q in %s", name[1], word)
	case f == nil:
		return rest, fmt.Errorf("unknown flag: %s%s", name, meant(name, l.command.VisibleFlags(), longName))
	case joined:
	case !takesValue(f):
		value = "true"
	case len(rest) > 0:
		value, rest = rest[0], rest[1:]
	default:
		l.open = f
		if len(name) == 2 {
			name = fmt.Sprintf("%q in %s", name[1], name)
		}
		return nil, fmt.Errorf("flag needs an argument: %s", name)
	}
	l.flags = append(l.flags, longName(f)+"="+value)
	return rest, refused(f, value)
}

// value returns the value given to a flag of text.
func (l *line) value(name string) (value string) {
	for _, given := range l.flags {
		if v, is := strings.CutPrefix(given, name+"="); is {
			value = v
		}
	}
	return value
}

// refused returns why a flag does not accept a value: the library's only reason is "parse error".
func refused(f cli.Flag, value string) (err error) {
	want := ""
	switch f.(type) {
	case *cli.BoolFlag:
		_, err = strconv.ParseBool(value)
		want = "neither true nor false"
	case *cli.Int64Flag:
		_, err = strconv.ParseInt(value, 0, 64)
		want = "no whole number, or too large a one"
	case *cli.DurationFlag:
		_, err = time.ParseDuration(value)
		want = "no duration such as 90s or 5m"
	}
	if err != nil {
		err = fmt.Errorf("%s: %q is %s", longName(f), value, want)
	}
	return err
}

// meant returns a question whether the nearest known name was meant, "" if none is near: the
// library would propose one at any distance, or none as "".
func meant[T any](name string, known []T, nameOf func(T) string) (text string) {
	nearest := 5
	for _, k := range known {
		k := nameOf(k)
		d := 2 * decode.Distance(name, k)
		if d > len(strings.TrimLeft(k, "-")) {
			continue
		}
		if strings.HasPrefix(name, k[:1]) { // the first letter is seldom wrong
			d--
		}
		if d < nearest {
			text, nearest = " (did you mean "+k+"?)", d
		}
	}
	return text
}
