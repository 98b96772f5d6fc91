package command

import (
	"fmt"
	"io"
	"os"

	"monopod/agent/print"
)

// Say prints an error to w, wrapped between words if that is a terminal; nothing, if it has no
// text.
func Say(w io.Writer, err error) {
	if err != nil && err.Error() != "" {
		fmt.Fprintln(w, errorText(err, print.Format{}.On(w, os.Getenv).Columns))
	}
}

func errorText(err error, columns int) string { return print.Wrap("monopod: "+err.Error(), columns) }
