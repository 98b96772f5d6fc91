package writelog

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand"
	"net"
	"os"
	"path/filepath"
	"testing"
)

// client speaks with a disk as an emulator does.
type client struct {
	t *testing.T
	net.Conn
}

// attach serves an image of 64 sectors that hold sevens, and attaches it.
func attach(t *testing.T) (*Disk, *client, string) {
	dir := t.TempDir()
	path := filepath.Join(dir, "disk.img")
	if err := os.WriteFile(path, bytes.Repeat([]byte{7}, 64*sectorSize), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := Serve(filepath.Join(dir, "sock"), path)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("unix", filepath.Join(dir, "sock"))
	if err != nil {
		t.Fatal(err)
	}
	c := &client{t, conn}
	t.Cleanup(func() { conn.Close(); _ = d.Close() })
	c.hear(make([]byte, 18))
	c.say(uint32(3), []byte(optionMagic), uint32(8), uint32(0)) // structured replies
	c.option(unsupported)
	c.say([]byte(optionMagic), uint32(optGo), uint32(6), make([]byte, 6))
	if b := c.option(info); binary.BigEndian.Uint64(b[2:]) != 64*sectorSize {
		t.Fatalf("the disk is %x", b)
	}
	c.option(ack)
	return d, c, path
}

func (c *client) say(values ...any) {
	c.t.Helper()
	if err := say(bufio.NewWriter(c), values...); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) hear(b []byte) []byte {
	c.t.Helper()
	if _, err := io.ReadFull(c, b); err != nil {
		c.t.Fatal(err)
	}
	return b
}

// option hears an answer of a kind to an option.
func (c *client) option(kind uint32) []byte {
	c.t.Helper()
	b := c.hear(make([]byte, 20))
	if got := binary.BigEndian.Uint32(b[12:]); got != kind {
		c.t.Fatalf("the answer is of kind %x, want %x", got, kind)
	}
	return c.hear(make([]byte, binary.BigEndian.Uint32(b[16:])))
}

// ask has a request carried out and returns its code.
func (c *client) ask(do, flags uint16, sector, sectors int64, value byte, answer []byte) uint32 {
	c.t.Helper()
	c.say(request{requestMagic, flags, do, 42, uint64(sector * sectorSize), uint32(sectors * sectorSize)})
	if do == doWrite {
		c.say(bytes.Repeat([]byte{value}, int(sectors)*sectorSize))
	}
	b := c.hear(make([]byte, 16))
	if binary.BigEndian.Uint64(b[8:]) != 42 {
		c.t.Fatalf("the answer is to another request: %x", b)
	}
	code := binary.BigEndian.Uint32(b[4:])
	if code == 0 {
		c.hear(answer)
	}
	return code
}

func TestAMachineReadsWhatItWrote(t *testing.T) {
	_, c, _ := attach(t)
	c.ask(doWrite, 0, 3, 2, 1, nil)
	c.ask(doWriteZeroes, 0, 4, 1, 0, nil)
	b := make([]byte, 4*sectorSize)
	if code := c.ask(doRead, 0, 2, 4, 0, b); code != 0 {
		t.Fatalf("code %d", code)
	}
	for k, want := range []byte{7, 1, 0, 7} {
		if b[k*sectorSize] != want {
			t.Errorf("sector %d holds %d", k+2, b[k*sectorSize])
		}
	}
}

func TestALogHasAllThatWasWrittenSince(t *testing.T) {
	d, c, path := attach(t)
	c.ask(doWrite, 0, 1, 1, 1, nil)
	var base []byte
	err := d.Record(path+".log", func() (err error) { base, err = os.ReadFile(path); return err })
	if err != nil {
		t.Fatal(err)
	}
	c.ask(doWrite, 0, 2, 3, 2, nil)
	c.ask(doWriteZeroes, 0, 3, 1, 0, nil)
	c.ask(doFlush, 0, 0, 0, 0, nil)
	c.ask(doWrite, 0, 9, 1, 3, nil)
	c.ask(doWrite, flagFUA, 10, 1, 4, nil)
	l := d.Log()
	defer l.Close()
	if l.Len() != 5 || d.Len() != 5 || l.Sure(5) != 3 {
		t.Fatalf("%d entries, %d are sure", l.Len(), l.Sure(5))
	}
	got := image{}
	for k := range int64(64) {
		got[k] = base[k*sectorSize]
	}
	if err := l.Replay(got, 5, rand.New(rand.NewSource(1))); err != nil {
		t.Fatal(err)
	}
	for sector, want := range map[int64]byte{0: 7, 1: 1, 2: 2, 3: 0, 4: 2, 5: 7, 10: 4} {
		if got[sector] != want {
			t.Errorf("sector %d holds %d, want %d", sector, got[sector], want)
		}
	}
}

func TestARequestBeyondTheDiskIsRefused(t *testing.T) {
	d, c, path := attach(t)
	if err := d.Record(path+".log", func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	if code := c.ask(doWrite, 0, 63, 2, 1, nil); code != invalid {
		t.Errorf("code %d", code)
	}
	if d.Len() != 0 {
		t.Error("it is in the log")
	}
}

func TestWhatIsNoRequestIsSaidByClose(t *testing.T) {
	d, c, _ := attach(t)
	c.say(make([]byte, 28))
	if _, err := io.ReadAll(c); err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	if err := d.Close(); err == nil {
		t.Error("nothing is said")
	}
}
