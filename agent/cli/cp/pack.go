package cp

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"monopod/agent/disk"
)

// packing makes an archive of files of this machine, in GNU's format, which all tars read
// with names of any length and with any bytes. Links are packed as they are.
type packing struct {
	ctx   context.Context
	copy  *Copy
	out   *headers
	tar   *tar.Writer
	holes bool // the other tar knows where files have holes

	names []string          // of the folder that is being packed, each with those above it
	first map[string]string // the first name in the archive of files with several
	left  leftOut

	count int
	bytes int64
	grown error // a file that changed while it was read
}

func newPacking(ctx context.Context, c *Copy, w io.Writer, holes bool) *packing {
	out := &headers{to: w}
	return &packing{ctx: ctx, copy: c, out: out, tar: tar.NewWriter(out), holes: holes, first: map[string]string{}}
}

// pack packs a file or folder under a name in the archive. The person's own path may be a link.
func (p *packing) pack(from, name string) error {
	folder, there, err := isThere(from)
	switch {
	case err != nil:
		return err
	case !there:
		return fmt.Errorf("%s doesn't exist on this machine", from)
	case folder:
		err = p.folder(from, name)
	default:
		err = p.alone(from, name)
	}
	if err == nil {
		err = p.tar.Close()
	}
	return errors.Join(err, p.grown)
}

// alone packs one file.
func (p *packing) alone(from, name string) error {
	f, err := os.OpenFile(from, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	s, err := disk.StatOf(f)
	switch {
	case err != nil:
		return err
	case !s.IsRegular():
		return fmt.Errorf("%s is neither a file nor a folder", from)
	}
	return p.file(f, s, name)
}

// folder packs a folder with its content.
func (p *packing) folder(from, name string) error {
	top, err := disk.OpenDir(from, 0)
	if err != nil {
		return err
	}
	defer top.Close()
	s, err := top.Self()
	if err != nil {
		return err
	}
	p.names = []string{name}
	if err := p.header(p.headerOf(s, name+"/", tar.TypeDir)); err != nil {
		return err
	}
	return disk.Walk(p.ctx, top, p.visit)
}

// visit packs one object of a walk.
func (p *packing) visit(f disk.Found) error {
	name := p.names[len(p.names)-1] + "/" + f.Name
	switch f.Step {
	case disk.Enter:
		s, err := f.Folder.Self()
		if err != nil {
			return err
		}
		p.names = append(p.names, name)
		return p.header(p.headerOf(s, name+"/", tar.TypeDir))
	case disk.Leave:
		p.names = p.names[:len(p.names)-1]
		return nil
	case disk.Mounted:
		p.left.add("%s: another file system", f.In.Path(f.Name))
		return nil
	}
	return p.leaf(f.In, f.Name, name)
}

// leaf packs what is not a folder.
func (p *packing) leaf(in *disk.Dir, entry, name string) error {
	s, err := in.Stat(entry)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case s.IsLink():
		target, err := in.Readlink(entry)
		if err != nil {
			return err
		}
		h := p.headerOf(s, name, tar.TypeSymlink)
		h.Linkname = target
		return p.header(h)
	}
	f, err := in.OpenOwn(entry)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, disk.ErrLink), errors.Is(err, disk.ErrNotRegular), errors.Is(err, disk.ErrMounted):
		p.left.add("%s: %v", in.Path(entry), errors.Unwrap(err))
		return nil
	case err != nil:
		return err
	}
	defer f.Close()
	if s, err = disk.StatOf(f); err != nil {
		return err
	}
	return p.file(f, s, name)
}

// headerOf returns the archive's header of a file.
func (p *packing) headerOf(s disk.Stat, name string, kind byte) *tar.Header {
	h := &tar.Header{Name: name, Typeflag: kind, Mode: int64(s.Mode & 0o7777), Uid: int(s.Uid), Gid: int(s.Gid),
		ModTime: s.Changed().Truncate(1e9), Format: tar.FormatGNU}
	if p.copy.NoPreserve {
		h.Uid, h.Gid = 0, 0
	}
	return h
}

func (p *packing) header(h *tar.Header) error {
	if p.count++; p.count > maxCopied {
		return p.copy.tooMuch(fmt.Sprintf("%d files and folders", maxCopied))
	}
	return p.tar.WriteHeader(h)
}

// file packs a file, and of one with several names its content once.
func (p *packing) file(f *os.File, s disk.Stat, name string) error {
	h := p.headerOf(s, name, tar.TypeReg)
	if s.Nlink > 1 {
		key := fmt.Sprintf("%d/%d", s.Dev, s.Ino)
		if first, is := p.first[key]; is {
			h.Typeflag, h.Linkname = tar.TypeLink, first
			return p.header(h)
		}
		p.first[key] = name
	}
	parts := []part{{0, s.Size()}}
	if p.holes {
		found, err := partsOf(f, s.Size())
		if err != nil {
			return err
		}
		parts = found
	}
	for _, k := range parts {
		h.Size += k.size
	}
	if p.bytes += h.Size; p.bytes > maxCopiedBytes {
		return p.copy.tooMuch(fmt.Sprintf("%d GiB", maxCopiedBytes>>30))
	}
	if h.Size < s.Size() {
		p.out.sparse, p.out.size = parts, s.Size()
	}
	if err := p.header(h); err != nil {
		return err
	}
	for _, k := range parts {
		if err := p.content(f, k); err != nil {
			return err
		}
	}
	return nil
}

// content packs a part of a file; one that has become shorter is filled up.
func (p *packing) content(f *os.File, k part) error {
	n, err := io.Copy(p.tar, untilDone{p.ctx, io.NewSectionReader(f, k.at, k.size)})
	if err != nil {
		return err
	}
	if n < k.size {
		p.grown = fmt.Errorf("%s changed while it was copied", f.Name())
	}
	for n < k.size && err == nil {
		more := min(k.size-n, block)
		_, err = p.tar.Write(zeros[:more])
		n += more
	}
	return err
}

// untilDone reads until its context ends.
type untilDone struct {
	ctx context.Context
	r   io.Reader
}

func (u untilDone) Read(b []byte) (int, error) {
	if err := context.Cause(u.ctx); err != nil {
		return 0, err
	}
	return u.r.Read(b)
}

// part is a part of a file that is no hole.
type part struct{ at, size int64 }

// maxParts is how many parts a file may have that is packed with its holes.
const maxParts = 100_000

// partsOf returns where a file has content. One in very many parts is taken as a whole.
func partsOf(f *os.File, size int64) (all []part, err error) {
	for at := int64(0); at < size; {
		data, hole, err := disk.NextData(f, at, size)
		if err != nil {
			return nil, err
		}
		if data < hole {
			all = append(all, part{data, hole - data})
		}
		if len(all) > maxParts {
			return []part{{0, size}}, nil
		}
		at = hole
	}
	if n := len(all); n == 0 || all[n-1].at+all[n-1].size < size {
		all = append(all, part{size, 0}) // by which tar knows where a hole at the end ends
	}
	return all, nil
}

// headers passes an archive on, and turns the next header into one of a file with holes if there
// are any: the library reads such headers, but does not write them.
type headers struct {
	to     io.Writer
	sparse []part
	size   int64 // of the file; 0: it has no holes
}

// The header of a file with holes in GNU's old format (GNU tar, "Old GNU Format"), in bytes.
const (
	headerSize = 512
	atChecksum = 148
	atType     = 156
	atMagic    = 257
	magic      = "ustar  \x00"
	atParts    = 386
	atMore     = 482 // whether a block with more parts follows
	atRealSize = 483
	inHeader   = 4 // parts
	inBlock    = 21
	partSize   = 24
	atMoreYet  = 504
)

func (h *headers) Write(b []byte) (int, error) {
	if h.size == 0 || len(b) != headerSize || string(b[atMagic:atMagic+len(magic)]) != magic || b[atType] != tar.TypeReg {
		return h.to.Write(b) // a long name, for example
	}
	header := make([]byte, headerSize)
	copy(header, b)
	header[atType] = tar.TypeGNUSparse
	number(header[atRealSize:atRealSize+12], h.size)
	rest := list(header[atParts:], h.sparse, inHeader, &header[atMore])
	sum := 0
	for k, c := range header {
		if k >= atChecksum && k < atChecksum+8 {
			c = ' '
		}
		sum += int(c)
	}
	copy(header[atChecksum:], fmt.Sprintf("%06o\x00 ", sum))
	for len(rest) > 0 {
		more := make([]byte, headerSize)
		rest = list(more, rest, inBlock, &more[atMoreYet])
		header = append(header, more...)
	}
	h.sparse, h.size = nil, 0
	if _, err := h.to.Write(header); err != nil {
		return 0, err
	}
	return len(b), nil
}

// list writes the first parts, and whether there are more, which it returns.
func list(to []byte, parts []part, most int, more *byte) (rest []part) {
	n := min(len(parts), most)
	for k, p := range parts[:n] {
		number(to[k*partSize:][:12], p.at)
		number(to[k*partSize+12:][:12], p.size)
	}
	if n < len(parts) {
		*more = 1
	}
	return parts[n:]
}

// number writes a number of 12 bytes: in octal, or if it is too large for that in base 256.
func number(to []byte, n int64) {
	text := fmt.Sprintf("%011o", n)
	if len(text) < len(to) {
		copy(to, text+"\x00")
		return
	}
	for k := len(to) - 1; k > 0; k-- {
		to[k], n = byte(n), n>>8
	}
	to[0] = 0x80
}
