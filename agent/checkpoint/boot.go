package checkpoint

import (
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Boot is the run of the kernel that the agent lives in.
type Boot struct {
	ID    string    // "": not known
	Since time.Time // by the current clock; zero: not known
}

// ReadBoot reads the current boot from the kernel.
func ReadBoot() Boot {
	var b Boot
	if id, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		b.ID = strings.TrimSpace(string(id))
	}
	var up unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &up) == nil {
		b.Since = time.Now().Add(-time.Duration(up.Nano()))
	}
	return b
}
