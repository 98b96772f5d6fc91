package agent

import (
	"bufio"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// giveBack returns to the machine what a burst of work took: free memory of
// the heap, and the mapping of program text, most of which only a start needs.
// An agent idles nearly always. Text that is used again is mapped again from
// the page cache, by faults of a few microseconds.
func giveBack() {
	debug.FreeOSMemory()
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	for _, m := range readOnlyMappings(exe) {
		// Nothing is lost: the kernel has these pages from the file, and nobody writes to them.
		_ = unix.Madvise(m, unix.MADV_DONTNEED)
	}
}

// readOnlyMappings returns the parts of memory that a file is mapped into for
// reading or running only.
func readOnlyMappings(file string) [][]byte {
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		return nil
	}
	defer f.Close()
	var out [][]byte
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var from, to uintptr
		var mode string
		if n, _ := fmt.Sscanf(lines.Text(), "%x-%x %s", &from, &to, &mode); n == 3 && mode[1] == '-' && strings.HasSuffix(lines.Text(), " "+file) {
			out = append(out, unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(nil), from)), to-from))
		}
	}
	return out
}
