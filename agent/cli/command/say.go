package command

import (
	"fmt"
	"io"
	"os"

	"monopod/agent/print"
)

// Say prints what went wrong to w, broken between words where that is a terminal; nothing, if there
// is no text to it.
func Say(w io.Writer, err error) {
	if err != nil && err.Error() != "" {
		fmt.Fprintln(w, errorText(err, print.Format{}.On(w, os.Getenv).Columns))
	}
}

func errorText(err error, columns int) string { return print.Wrap("monopod: "+err.Error(), columns) }
