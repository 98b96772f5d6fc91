package writelog

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// How a connection begins: see "Fixed newstyle negotiation" in
// https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md.
const (
	magic       = "NBDMAGIC"
	optionMagic = "IHAVEOPT"

	fixedNewstyle = 1
	noZeroes      = 2

	optExportName = 1
	optAbort      = 2
	optInfo       = 6
	optGo         = 7

	answerMagic = 0x3e889045565a9
	ack         = 1
	info        = 3
	unsupported = 1<<31 + 1

	// has flags, and can flush, FUA, trim and write zeroes
	abilities = 1<<0 | 1<<2 | 1<<3 | 1<<5 | 1<<6
)

// greet agrees with the machine about the disk.
func (d *Disk) greet(r io.Reader, w *bufio.Writer) error {
	var wants uint32
	if err := say(w, []byte(magic+optionMagic), uint16(fixedNewstyle|noZeroes)); err != nil {
		return err
	}
	if err := binary.Read(r, binary.BigEndian, &wants); err != nil {
		return err
	}
	for {
		var o struct {
			Magic          [8]byte
			Option, Length uint32
		}
		if err := binary.Read(r, binary.BigEndian, &o); err != nil {
			return err
		}
		if string(o.Magic[:]) != optionMagic || o.Length > 1<<16 {
			return fmt.Errorf("an option is none: %+v", o)
		}
		if _, err := io.CopyN(io.Discard, r, int64(o.Length)); err != nil {
			return err
		}
		answer := func(kind uint32, about ...any) error {
			size := 0
			for _, v := range about {
				size += binary.Size(v)
			}
			return say(w, append([]any{uint64(answerMagic), o.Option, kind, uint32(size)}, about...)...)
		}
		switch o.Option {
		case optExportName:
			zeroes := make([]byte, 124)
			if wants&noZeroes != 0 {
				zeroes = nil
			}
			return say(w, uint64(d.size), uint16(abilities), zeroes)
		case optGo, optInfo:
			err := errors.Join(answer(info, uint16(0), uint64(d.size), uint16(abilities)), answer(ack))
			if err != nil || o.Option == optGo {
				return err
			}
		case optAbort:
			return errors.Join(answer(ack), io.EOF)
		default:
			if err := answer(unsupported); err != nil {
				return err
			}
		}
	}
}

// say sends values as they are on the wire.
func say(w *bufio.Writer, values ...any) error {
	for _, v := range values {
		if err := binary.Write(w, binary.BigEndian, v); err != nil {
			return err
		}
	}
	return w.Flush()
}
