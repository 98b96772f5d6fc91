package decode

import (
	"errors"
	"iter"
	"strings"
)

// Limits of a container's variables, command and args after $(NAME) is expanded in them.
const (
	// MaxString is the longest string with its NUL, or variable with its name: Linux does not
	// execute a program that is given a longer one (MAX_ARG_STRLEN).
	MaxString = 128 << 10
	// MaxStrings is the length of all of them together: half of what Linux usually allows.
	MaxStrings = 1 << 20
	// MaxSubPath is the longest expanded subPathExpr with its NUL (PATH_MAX).
	MaxSubPath = 4096
)

// Errors of texts beyond these limits.
var (
	ErrLongString  = errors.New("longer than 128 KiB once its variables are expanded: no program can be executed with it; shorten it")
	ErrLongStrings = errors.New("environment, command and args are larger than 1 MiB in all once their variables are expanded: shorten them")
	ErrLongSubPath = errors.New("longer than 4095 bytes once its variables are expanded: no path can be; shorten it")
)

// Piece is a part of a text with variables: literal text or a reference.
type Piece struct {
	Text string // the literal text; "$" for "$$"
	Name string // of the variable, if it is a reference
	Ref  bool   // it is $(Name); Text is shown if there is no such variable
}

// Pieces splits a text into what Kubernetes expands and what it leaves alone: $(NAME) is a
// reference, $$ is $, any other $ is itself.
func Pieces(s string) iter.Seq[Piece] {
	return func(yield func(Piece) bool) {
		last := strings.LastIndexByte(s, ')')
		for at := 0; at < len(s); {
			p, length := firstPiece(s[at:], last-at)
			if !yield(p) {
				return
			}
			at += length
		}
	}
}

// firstPiece returns the first piece of a text, and its length. last is the index of its last ")",
// which the caller searches for only once.
func firstPiece(s string, last int) (Piece, int) {
	i := strings.IndexByte(s, '$')
	if i < 0 || i == len(s)-1 {
		return Piece{Text: s}, len(s)
	}
	if i > 0 {
		return Piece{Text: s[:i]}, i
	}
	switch {
	case s[1] == '$':
		return Piece{Text: "$"}, 2
	case s[1] == '(' && last > 0:
		end := strings.IndexByte(s, ')')
		return Piece{Text: s[:end+1], Name: s[2:end], Ref: true}, end + 1
	case s[1] == '(':
		return Piece{Text: "$("}, 2
	}
	return Piece{Text: "$"}, 1
}
