package message

import "fmt"

// Size is a number of bytes for people: in decimal units with two digits or more.
func Size(bytes uint64) Name {
	units, n := []string{"kB", "MB", "GB", "TB", "PB"}, float64(bytes)
	if bytes < 1000 {
		return Name(fmt.Sprintf("%d B", bytes))
	}
	for k, unit := range units {
		if n /= 1000; n < 999.5 || k == len(units)-1 {
			if n < 9.95 {
				return Name(fmt.Sprintf("%.1f %s", n, unit))
			}
			return Name(fmt.Sprintf("%.0f %s", n, unit))
		}
	}
	return ""
}
