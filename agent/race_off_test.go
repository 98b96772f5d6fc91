//go:build !race

package agent

const fewer = 1
