package cri

import "time"

// CRIO is the runtime name that CRI-O reports.
const CRIO = "cri-o"

// repeatIn bounds calls that create a sandbox or a container on CRI-O. When a caller gives up,
// CRI-O continues its work. A repeated call waits until its own caller gives up, even if the work
// is done by then; only the call after that returns the result, if it comes within a minute
// (getResourceOrWait in server/utils.go, internal/resourcestore).
const repeatIn = 40 * time.Second

// makeIn returns the timeout of a call that creates a sandbox or a container.
func (c *Client) makeIn(timeout time.Duration) time.Duration {
	if c.isCRIO.Load() {
		return min(timeout, repeatIn)
	}
	return timeout
}
