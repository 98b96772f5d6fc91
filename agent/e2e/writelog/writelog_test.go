package writelog

import (
	"bytes"
	"io"
	"math/rand"
	"testing"
)

// memory is the data of a log.
type memory struct{ *bytes.Reader }

func (memory) Close() error { return nil }

// maker makes a log: each entry has a byte that all its sectors hold.
type maker struct {
	bytes.Buffer
	entries []entry
}

func (m *maker) add(sector, sectors int64, k kind, value byte) *entry {
	e := entry{kind: k, offset: sector * sectorSize, length: sectors * sectorSize, at: int64(m.Len())}
	m.entries = append(m.entries, e)
	if k == data {
		m.Write(bytes.Repeat([]byte{value}, int(sectors)*sectorSize))
	}
	return &m.entries[len(m.entries)-1]
}

func (m *maker) log() *Log { return &Log{memory{bytes.NewReader(m.Bytes())}, m.entries} }

// image is an image in memory: the first byte of each sector.
type image map[int64]byte

func (d image) WriteAt(b []byte, at int64) (int, error) {
	for k := 0; k < len(b); k += sectorSize {
		d[(at+int64(k))/sectorSize] = b[k]
	}
	return len(b), nil
}

func replay(t *testing.T, l *Log, cut int, seed int64) image {
	t.Helper()
	d := image{}
	if err := l.Replay(d, cut, rand.New(rand.NewSource(seed))); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestWhatWasFlushedSurvivesEachCut(t *testing.T) {
	m := &maker{}
	m.add(10, 4, data, 1)
	m.add(12, 1, data, 2)
	m.add(0, 0, flush, 0)
	m.add(10, 4, data, 3)
	m.add(20, 1, data, 4).fua = true
	l := m.log()
	if got := l.Sure(5); got != 3 {
		t.Errorf("%d entries are sure", got)
	}
	fates, torn := map[byte]int{}, 0
	for seed := range int64(200) {
		d := replay(t, l, 5, seed)
		for sector, was := range map[int64]byte{10: 1, 11: 1, 12: 2, 13: 1} {
			if d[sector] != was && d[sector] != 3 {
				t.Fatalf("seed %d: sector %d holds %d", seed, sector, d[sector])
			}
			fates[d[sector]]++
		}
		if d[10] != d[11] {
			torn++
		}
		if d[20] != 4 {
			t.Fatalf("seed %d: a write with FUA is lost", seed)
		}
	}
	if fates[1] == 0 || fates[2] == 0 || fates[3] == 0 || torn == 0 {
		t.Errorf("what was not flushed has not every fate: %v, torn %d times", fates, torn)
	}
}

func TestTheSameSeedGivesTheSameDisk(t *testing.T) {
	m := &maker{}
	for k := range byte(50) {
		m.add(int64(k%7)*8, 16, data, k+1)
	}
	l := m.log()
	a, b, other := replay(t, l, 50, 3), replay(t, l, 50, 3), replay(t, l, 50, 4)
	differs := false
	for k := range int64(80) {
		if a[k] != b[k] {
			t.Fatalf("sector %d is %d and %d", k, a[k], b[k])
		}
		differs = differs || a[k] != other[k]
	}
	if !differs {
		t.Error("another seed gives the same disk")
	}
}

func TestACutKeepsNothingOfLaterEntries(t *testing.T) {
	m := &maker{}
	m.add(1, 1, data, 1)
	m.add(0, 0, flush, 0)
	m.add(1, 1, data, 2)
	m.add(0, 0, flush, 0)
	l := m.log()
	if d := replay(t, l, 2, 1); d[1] != 1 {
		t.Errorf("it holds %d", d[1])
	}
	if d := replay(t, l, 4, 1); d[1] != 2 {
		t.Errorf("it holds %d", d[1])
	}
}

func TestZeroesHaveNoDataInTheLog(t *testing.T) {
	m := &maker{}
	m.add(5, 3, data, 9)
	m.add(5, 2, zeroes, 0)
	m.add(9, 1, data, 7)
	m.add(0, 0, flush, 0)
	d := replay(t, m.log(), 4, 1)
	if d[5] != 0 || d[6] != 0 || d[7] != 9 || d[9] != 7 {
		t.Errorf("the disk holds %v", d)
	}
}

func TestALogWithoutItsDataIsSaid(t *testing.T) {
	m := &maker{}
	m.add(5, 3, data, 9)
	m.add(0, 0, flush, 0)
	m.Truncate(sectorSize)
	if err := m.log().Replay(image{}, 2, rand.New(rand.NewSource(1))); err == nil {
		t.Error("it is replayed")
	}
}

var _ io.WriterAt = image{}
