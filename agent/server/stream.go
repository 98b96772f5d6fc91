package server

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// streamWrite is how long a reader of a stream may take for each part.
const streamWrite = 10 * time.Second

// stream is an answer without an end. It has no time limit as a whole, but one for each part: a
// reader that is too slow is cut off.
type stream struct {
	http.ResponseWriter
	control *http.ResponseController
	ctx     context.Context // ends when the reader leaves or the server ends
	started bool            // the reader has received something of the answer
}

// stream starts one, or answers that there are too many: then ok is false. end must be called when
// it is over.
func (s *Server) stream(w http.ResponseWriter, r *http.Request) (st *stream, end func(), ok bool) {
	n, known := r.Context().Value(clientKey{}).(*client)
	if known && !n.crowd.streamed(1) {
		http.Error(w, "too many streams are open", http.StatusServiceUnavailable)
		return nil, nil, false
	}
	ctx, cancel := context.WithCancel(r.Context())
	stop := context.AfterFunc(s.ending, cancel)
	return &stream{ResponseWriter: w, control: http.NewResponseController(w), ctx: ctx}, func() {
		stop()
		cancel()
		if known {
			n.crowd.streamed(-1)
		}
	}, true
}

// streamed counts streams; it reports whether there is room for more.
func (c *connLimit) streamed(more int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if more > 0 && c.streams >= maxStreams {
		return false
	}
	c.streams += more
	return true
}

// Write sends data at once.
func (st *stream) Write(data []byte) (int, error) {
	if err := st.control.SetWriteDeadline(time.Now().Add(streamWrite)); err != nil {
		return 0, fmt.Errorf("stream: %w", err)
	}
	st.started = true
	n, err := st.ResponseWriter.Write(data)
	if err == nil {
		err = st.control.Flush()
	}
	return n, err
}
