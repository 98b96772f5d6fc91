package support

import (
	"regexp"
	"strings"
)

const secretNames = `(?:passw|passphrase|secret|token|auth|credential|cookie|key)`

var (
	// secretKey is a key that is named like a secret, with the sign before its value, as TOML, YAML and
	// JSON have it. The heading of a table of TOML is none: it has no such sign.
	secretKey = regexp.MustCompile(`(?i)["']?[\w./-]*` + secretNames + `[\w./-]*["']?[ \t]*([=:])[ \t]*`)

	// lineStart is what stands before the first key of a line.
	lineStart = regexp.MustCompile(`^[ \t]*(?:- +)*`)

	// userOfURL is what stands before the host of a URL: up to the last @, since a password may have one.
	userOfURL = regexp.MustCompile(`(\w://)[^/\s"]*@`)
)

// quotes are the ways to quote a value, the longest first. One without an end reaches to the end of the text.
var quotes = []*regexp.Regexp{
	regexp.MustCompile(`(?s)^"""(?:[^"\\]|\\.|"{1,2}[^"])*(?:"{3,5}|$)`),
	regexp.MustCompile(`(?s)^'''.*?(?:'{3,5}|$)`),
	regexp.MustCompile(`(?s)^"(?:[^"\\]|\\.)*(?:"|$)`),
	regexp.MustCompile(`^'(?:[^']|'')*(?:'|$)`),
}

// HideConfig returns the text of a configuration file without what may be a secret: the whole values
// of keys that are named so, also those of several lines, and the users of URLs.
func HideConfig(text string) string {
	var out strings.Builder
	done := 0
	for {
		at := secretKey.FindStringSubmatchIndex(text[done:])
		if at == nil {
			break
		}
		start, sign := done+at[1], text[done+at[2]]
		end := start + valueLength(text[start:], sign == ':', keyColumn(text[:done+at[0]]))
		out.WriteString(text[done:start])
		if strings.TrimSpace(text[start:end]) != "" {
			out.WriteString(Mark)
		}
		done = end
	}
	out.WriteString(text[done:])
	return userOfURL.ReplaceAllString(out.String(), "${1}"+Mark)
}

// keyColumn returns where the first key stands in the last line of a text.
func keyColumn(before string) int {
	line := before[strings.LastIndexByte(before, '\n')+1:]
	return len(lineStart.FindString(line))
}

// valueLength returns how long the value is that a text begins with. In YAML it goes on in the lines
// that stand deeper than its key.
func valueLength(text string, yaml bool, column int) int {
	if length := quotedLength(text); length > 0 {
		return length
	}
	if strings.HasPrefix(text, "[") || strings.HasPrefix(text, "{") {
		return bracketedLength(text)
	}
	end := lineLength(text)
	for yaml && end < len(text) && isDeeper(text[end+1:], column) {
		end += 1 + lineLength(text[end+1:])
	}
	return end
}

func lineLength(text string) int {
	if end := strings.IndexByte(text, '\n'); end >= 0 {
		return end
	}
	return len(text)
}

// isDeeper reports whether the first line of a text is part of the value of a key in that column: it
// is empty, stands deeper, or is an item of its list.
func isDeeper(text string, column int) bool {
	line := text[:lineLength(text)]
	content := strings.TrimLeft(line, " \t")
	deep := len(line) - len(content)
	return strings.TrimSpace(line) == "" || deep > column || deep == column && strings.HasPrefix(content, "- ")
}

// quotedLength returns how long the quoted value is that a text begins with, 0 if there is none.
func quotedLength(text string) int {
	for _, q := range quotes {
		if value := q.FindString(text); value != "" {
			return len(value)
		}
	}
	return 0
}

// bracketedLength returns how long the list or object is that a text begins with.
func bracketedLength(text string) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		case '"', '\'':
			i += max(1, quotedLength(text[i:])) - 1
		case '#': // a comment, if a space is before it
			if i > 0 && strings.ContainsRune(" \t\n", rune(text[i-1])) {
				i += lineLength(text[i:]) - 1
			}
		}
		if depth == 0 {
			return i + 1
		}
	}
	return len(text)
}
