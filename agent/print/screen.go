package print

import (
	"bytes"
	"fmt"
	"slices"
)

// InPlace returns text as one write that replaces the screen without clearing it first: to the
// top, each line on an erased one (erasing behind a line that fills the screen would take its last
// character), then everything below. Lines that do not fit on the screen are counted; one that is
// too long is cut by the terminal, which breaks no line meanwhile (DECAWM).
func InPlace(text []byte, rows int) []byte {
	if all := bytes.Count(text, []byte("\n")); rows > 1 && all >= rows {
		end := 0
		for range rows - 2 {
			end += bytes.IndexByte(text[end:], '\n') + 1
		}
		text = fmt.Appendf(slices.Clip(text[:end]), "(%d more lines)\n", all-(rows-2))
	}
	return slices.Concat([]byte("\x1b[?7l\x1b[H\x1b[K"), bytes.ReplaceAll(text, []byte("\n"), []byte("\n\x1b[K")), []byte("\x1b[J\x1b[?7h"))
}
