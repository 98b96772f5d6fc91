package stats

import (
	"bytes"
	"os"
	"strconv"
	"strings"
)

// number reads a file that holds one number; nil if there is none, as in "max".
func number(path string) *uint64 {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return parse(bytes.TrimSpace(b))
}

func parse(b []byte) *uint64 {
	n, err := strconv.ParseUint(string(b), 10, 64)
	if err != nil {
		return nil
	}
	return &n
}

// eachPair calls take for each line of the form "key number" and reports whether
// the file could be read.
func eachPair(path string, take func(key string, n *uint64)) bool {
	b, err := os.ReadFile(path)
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(b)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.ParseUint(value, 10, 64); err == nil {
			take(key, &n)
		}
	}
	return true
}

// into returns what eachPair takes: the numbers to keep, by key.
func into(places map[string]**uint64) func(string, *uint64) {
	return func(key string, n *uint64) {
		if to := places[key]; to != nil {
			*to = n
		}
	}
}

// lines returns the fields of each line of a file.
func lines(path string) [][]string {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	var out [][]string
	for line := range strings.Lines(string(b)) {
		out = append(out, strings.Fields(line))
	}
	return out
}

// readPressure reads a file such as cpu.pressure; nil without one.
func readPressure(path string) *pressure {
	var p *pressure
	for _, f := range lines(path) {
		if len(f) < 5 {
			continue
		}
		if p == nil {
			p = &pressure{}
		}
		to := &p.Some
		if f[0] == "full" {
			to = &p.Full
		}
		for _, pair := range f[1:] {
			key, value, _ := strings.Cut(pair, "=")
			switch key {
			case "avg10":
				to.Avg10, _ = strconv.ParseFloat(value, 64)
			case "avg60":
				to.Avg60, _ = strconv.ParseFloat(value, 64)
			case "avg300":
				to.Avg300, _ = strconv.ParseFloat(value, 64)
			case "total":
				to.Total, _ = strconv.ParseUint(value, 10, 64)
			}
		}
	}
	return p
}
