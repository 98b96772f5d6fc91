package command

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"monopod/manifests/decode"
)

// line is the words behind a command's name, told apart by the flags that the
// command declares. The library takes no flags behind arguments, no value that
// is joined to a letter (-ojson), and not both names of one flag.
type line struct {
	command *cli.Command
	flags   []string // as --name=value
	args    []string
	dash    int      // how many args came before "--"; -1: it did not come
	help    bool     // is asked for
	open    cli.Flag // whose value did not come
}

// take takes in the first word, and the second if it is the value of the first.
// It returns the others. Words that are refused are left out.
func (l *line) take(words []string) (rest []string, err error) {
	word, rest := words[0], words[1:]
	switch {
	case word == "--":
		l.dash, l.args = len(l.args), append(l.args, rest...)
		return nil, nil
	case strings.HasPrefix(word, "--"):
		name, value, joined := strings.Cut(word, "=")
		return l.give(name, value, joined, rest)
	case strings.HasPrefix(word, "-") && len(word) > 1:
		return l.letters(word[1:], rest)
	}
	l.args = append(l.args, word)
	return rest, nil
}

// letters takes in what a single dash stands before: flags of one letter, of
// which the last may have a value.
func (l *line) letters(letters string, rest []string) ([]string, error) {
	for {
		name, value := "-"+letters[:1], letters[1:]
		f := flagOf(l.command, name)
		switch {
		case f == nil && name != "-h":
			return rest, fmt.Errorf("unknown shorthand flag: %q in -%s", letters[0], letters)
		case f == nil || value == "" || takesValue(f) || value[0] == '=':
			return l.give(name, strings.TrimPrefix(value, "="), value != "", rest)
		}
		l.flags = append(l.flags, longName(f)+"=true")
		letters = value
	}
}

// give gives a flag its value, which is joined to it, or the first word of rest.
func (l *line) give(name, value string, joined bool, rest []string) ([]string, error) {
	f := flagOf(l.command, name)
	switch {
	case f == nil && (name == "--help" || name == "-h"):
		l.help = true
		return nil, nil
	case f == nil:
		return rest, fmt.Errorf("unknown flag: %s%s", name, meant(name, longNames(l.command)))
	case joined:
	case !takesValue(f):
		value = "true"
	case len(rest) > 0:
		value, rest = rest[0], rest[1:]
	default:
		l.open = f
		return nil, fmt.Errorf("flag needs an argument: %s", name)
	}
	if err := refused(f, value); err != nil {
		return rest, fmt.Errorf("invalid argument %q for %q flag: %w", value, names(f), err)
	}
	l.flags = append(l.flags, longName(f)+"="+value)
	return rest, nil
}

// value returns that of a flag of text, or its default; "" if there is no such flag.
func (l *line) value(name string) (value string) {
	if f, ok := flagOf(l.command, "--"+name).(cli.DocGenerationFlag); ok {
		value = f.GetValue()
	}
	for _, given := range l.flags {
		if v, is := strings.CutPrefix(given, "--"+name+"="); is {
			value = v
		}
	}
	return value
}

// refused says why a flag does not take a value: the library has no other reason
// than "parse error".
func refused(f cli.Flag, value string) (err error) {
	switch f := f.(type) {
	case *cli.BoolFlag:
		_, err = strconv.ParseBool(value)
	case *cli.Int64Flag:
		_, err = strconv.ParseInt(value, 0, 64)
	case *cli.DurationFlag:
		_, err = time.ParseDuration(value)
	case *cli.GenericFlag:
		err = f.Value.Set(value)
	}
	return err
}

// meant asks whether the nearest of the known names was meant, "" if none is near:
// the library would propose one however far it is, or none as "".
func meant(name string, known []string) string {
	const far = 3
	best, nearest := "", far
	for _, k := range known {
		if d := decode.Distance(name, k); d < nearest && d < len(strings.TrimLeft(k, "-")) {
			best, nearest = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %s?)", best)
}
