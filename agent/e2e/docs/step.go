package docs

import (
	"fmt"
	"regexp"
	"strings"
)

// Step is one thing that a person does with a block.
type Step struct {
	Line     int    // of the page
	Command  string // for a shell
	Output   string // that the page quotes
	IsQuoted bool   // the output is compared, and the exit code is not, unless there is no output
}

var (
	putsInto = regexp.MustCompile("(?i)\\bput this into `([^` ]+)`")
	addsTo   = regexp.MustCompile("(?i)\\badd this to `([^` ]+)`")
)

// Steps returns what a person does with a block; none: nothing that a test could do.
func (b Block) Steps() ([]Step, error) {
	switch b.Kind {
	case "sh":
		return []Step{{Line: b.Line, Command: b.Text}}, nil
	case "console":
		return b.typed()
	case Indented, "":
		return nil, nil
	}
	if m := putsInto.FindStringSubmatch(b.Above); m != nil {
		return []Step{{Line: b.Line, Command: b.redirect(">", m[1])}}, nil
	}
	if m := addsTo.FindStringSubmatch(b.Above); m != nil {
		return []Step{{Line: b.Line, Command: b.redirect(">>", m[1])}}, nil
	}
	return nil, nil
}

// redirect is the command that writes the block to a file.
func (b Block) redirect(to, file string) string {
	return fmt.Sprintf("cat %s%s <<'END OF THE BLOCK'\n%sEND OF THE BLOCK\n", to, file, b.Text)
}

// typed returns the commands of a block that shows a screen.
func (b Block) typed() (steps []Step, err error) {
	line := b.Line - 1
	for text := range strings.Lines(b.Text) {
		line++
		command, isCommand := strings.CutPrefix(text, "$ ")
		more, isMore := strings.CutPrefix(text, "> ")
		switch last := len(steps) - 1; {
		case isCommand:
			steps = append(steps, Step{Line: line, Command: command, IsQuoted: true})
		case last < 0:
			return nil, fmt.Errorf("line %d: a screen begins with what is typed: $ command", line)
		case isMore && steps[last].Output == "":
			steps[last].Command += more
		default:
			steps[last].Output += text
		}
	}
	for k := range steps {
		steps[k].Output = strings.TrimRight(steps[k].Output, "\n")
	}
	return steps, nil
}
