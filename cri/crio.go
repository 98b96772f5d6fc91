package cri

import "time"

// CRIO is what CRI-O calls itself.
const CRIO = "cri-o"

// repeatIn bounds calls that make a sandbox or a container on CRI-O, which carries on with
// what its caller has left: the same call again waits until its caller leaves, even when
// all is done, and only the one after that is given what was made, if it comes within a
// minute (getResourceOrWait in its server/utils.go, internal/resourcestore).
const repeatIn = 40 * time.Second

// makeIn bounds a call that makes a sandbox or a container.
func (c *Client) makeIn(timeout time.Duration) time.Duration {
	if c.isCRIO.Load() {
		return min(timeout, repeatIn)
	}
	return timeout
}
