package stream

import (
	"encoding/json"
	"io"
)

// resize tells the server of each size until the command is over.
func (r *run) resize(to io.WriteCloser, over <-chan struct{}) {
	defer to.Close()
	encode := json.NewEncoder(to)
	for {
		select {
		case size, ok := <-r.streams.Sizes:
			if !ok || encode.Encode(size) != nil {
				return
			}
		case <-over:
			return
		}
	}
}
