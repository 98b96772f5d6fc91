package page

import (
	"fmt"
	"strings"

	"monopod/agent/status"
)

// A picture is as wide as an hour has minutes, times step.
const (
	pictureStep   = 2
	pictureHeight = 24
	pictureWidth  = 60 * pictureStep
)

// picture is a small line of the last hour.
type picture struct {
	Name      string // what it is of
	Text      string // for those who do not see it
	Low, High string
	Line      string // the path of the line
	Area      string // that of the area below it
}

func cpuOf(p status.Point) uint64    { return uint64(p.CPU) }
func memoryOf(p status.Point) uint64 { return uint64(p.Memory) }

// draw returns the picture of a trend, nil if there is none yet. Its scale reaches from zero to the
// highest value, and at least to least, so that a pod at rest has no mountains.
func draw(name string, points []status.Point, of func(status.Point) uint64, words func(uint64) string, least uint64) *picture {
	if len(points) < 2 {
		return nil
	}
	low, high := of(points[0]), uint64(0)
	for _, p := range points {
		low, high = min(low, of(p)), max(high, of(p))
	}
	scale := max(high, least)
	at := func(p status.Point) int { return pictureHeight - 1 - int(of(p)*(pictureHeight-2)/scale) }
	x := pictureWidth - (len(points)-1)*pictureStep
	var line strings.Builder
	fmt.Fprintf(&line, "M%d %d", x, at(points[0]))
	last, flat := at(points[0]), 0
	for _, p := range points[1:] {
		y := at(p)
		flat += pictureStep
		if y == last {
			continue
		}
		if flat > pictureStep {
			fmt.Fprintf(&line, "h%d", flat-pictureStep)
		}
		fmt.Fprintf(&line, "l%d %d", pictureStep, y-last)
		last, flat = y, 0
	}
	if flat > 0 {
		fmt.Fprintf(&line, "h%d", flat)
	}
	return &picture{Name: name, Low: words(low), High: words(high), Line: line.String(), Area: fmt.Sprintf("%sV%dH%dz", line.String(), pictureHeight, x),
		Text: fmt.Sprintf("%s of the last %d min: %s to %s", name, len(points), words(low), words(high))}
}
