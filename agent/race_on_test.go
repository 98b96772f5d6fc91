//go:build race

package agent

// fewer is how many times fewer walks are made with the race detector, with which each takes many
// times as long. make unit makes all of them without it, too.
const fewer = 4
