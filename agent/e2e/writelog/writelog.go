// Package writelog is the disk of a virtual machine, served by the network block device
// protocol, with a log of its writes: it tells what of them a power cut leaves.
package writelog

import (
	"fmt"
	"io"
	"math/rand"
)

const sectorSize = 512

// kind is what an entry does.
type kind byte

const (
	data   kind = iota
	zeroes      // the log holds no data of it
	flush       // what was written before is on the disk
)

// entry is one request to the disk that the machine was told is done.
type entry struct {
	kind
	fua    bool // it is on the disk without a flush
	offset int64
	length int64
	at     int64 // of its data in the log
}

// Log is what was written to a disk, in its order.
type Log struct {
	data interface {
		io.ReaderAt
		io.Closer
	}
	entries []entry
}

func (l *Log) Close() error { return l.data.Close() }

// Len returns the number of entries.
func (l *Log) Len() int { return len(l.entries) }

// Sure returns how many of the entries before a cut are on the disk for sure: those up to
// the last flush. 0: there was none.
func (l *Log) Sure(cut int) int {
	for k := cut; k > 0; k-- {
		if l.entries[k-1].kind == flush {
			return k
		}
	}
	return 0
}

// Replay writes on an image what of the first cut entries survives: all before the last
// flush, and of the later ones some, in their order, of which some are torn, as the
// random numbers have it. An entry with FUA always survives.
func (l *Log) Replay(image io.WriterAt, cut int, random *rand.Rand) error {
	sure := l.Sure(cut)
	for k, e := range l.entries[:cut] {
		keep := func(int64) bool { return true }
		if k >= sure && !e.fua {
			keep = fate(e.length/sectorSize, random)
		}
		if err := l.write(image, e, keep); err != nil {
			return fmt.Errorf("replay entry %d: %w", k, err)
		}
	}
	return nil
}

// fate decides which sectors of an entry survive: all, none, those before one, or any
// pages of 4 KiB.
func fate(sectors int64, random *rand.Rand) func(sector int64) bool {
	choice, end, pages := random.Intn(8), random.Int63n(sectors+1), random.Int63()
	return func(s int64) bool {
		switch {
		case choice < 3:
			return false
		case choice == 3:
			return s < end
		case choice == 4:
			return pages>>(s/8%60)&1 == 0
		}
		return true
	}
}

// write writes the sectors of an entry that keep says yes to.
func (l *Log) write(image io.WriterAt, e entry, keep func(sector int64) bool) error {
	for from := int64(0); from < e.length; {
		to := from
		for to < e.length && to-from < most && keep(to/sectorSize) {
			to = min(to+sectorSize, e.length)
		}
		if to == from {
			from += sectorSize
			continue
		}
		b := make([]byte, to-from)
		if e.kind == data {
			if _, err := l.data.ReadAt(b, e.at+from); err != nil {
				return err
			}
		}
		if _, err := image.WriteAt(b, e.offset+from); err != nil {
			return err
		}
		from = to
	}
	return nil
}

// most is how many bytes are read or written at once.
const most = 1 << 20
