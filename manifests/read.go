package manifests

import (
	"errors"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"monopod/manifests/decode"
)

// fresh is how long after its modification a file counts as being written where the kernel cannot
// tell whether it has a writer.
const fresh = 50 * time.Millisecond

// errIrregular means that a path leads to a folder, pipe, socket or device.
var errIrregular = errors.New("not a regular file")

// errLarge means that a file is too large to be read.
var errLarge = errors.New("larger than 10 MiB: nothing that is read here is")

// ReadFile reads a regular file, or one that a symlink leads to. It does not wait for the writer of
// a pipe, and refuses files of 10 MiB or more and those that the kernel generates. It waits for a
// file system that does not answer.
func ReadFile(path string) ([]byte, error) {
	f, _, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadBounded(f)
}

// ReadBounded reads to the end; 10 MiB or more are an error.
func ReadBounded(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, decode.MaxSize))
	if err == nil && len(data) >= decode.MaxSize {
		return nil, errLarge
	}
	return data, err
}

// signature distinguishes versions of a file without reading it.
type signature struct {
	dev, ino     uint64
	size         int64
	mtime, ctime int64 // ns
}

func signatureOf(info os.FileInfo) signature {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return signature{size: info.Size(), mtime: info.ModTime().UnixNano()}
	}
	return signatureIn(st)
}

func signatureIn(st *syscall.Stat_t) signature {
	return signature{uint64(st.Dev), st.Ino, st.Size, st.Mtim.Nano(), st.Ctim.Nano()}
}

// lstat is os.Lstat into a variable of the caller, which calls it for each file of the folder and
// would otherwise allocate.
func lstat(path string, st *syscall.Stat_t) error {
	for {
		err := syscall.Lstat(path, st)
		if err != syscall.EINTR {
			return err
		}
	}
}

// stable reports whether the version is so old that another write must change the signature: file
// times advance in steps of some milliseconds.
func (s signature) stable(now time.Time) bool {
	return now.UnixNano()-max(s.mtime, s.ctime) > int64(20*time.Millisecond)
}

// reading is the result of reading a file.
type reading struct {
	data   []byte
	sig    signature
	isNull bool // it is a link to /dev/null, or /dev/null itself: an end without a doubt
	busy   bool // a writer has it open: data may be incomplete, and is nil unless insist is set
}

// readManifest reads a regular file, following symlinks. It never blocks on a pipe. insist reads
// even a file that is open for writing.
func readManifest(path string, insist bool) (reading, error) {
	f, info, err := openRegular(path)
	if err != nil {
		return reading{}, err
	}
	defer f.Close()
	r := reading{sig: signatureOf(info), busy: BeingWritten(f, info)}
	if r.busy && !insist {
		return r, nil
	}
	if r.data, err = ReadBounded(f); err != nil {
		return reading{}, err
	}
	after, err := f.Stat()
	if err != nil {
		return reading{}, err
	}
	if changed := signatureOf(after) != r.sig; changed || BeingWritten(f, after) {
		r.busy = true
		if !insist {
			r.data = nil
		}
	}
	return r, nil
}

// HasWriter is BeingWritten of a path; what cannot be opened has no writer.
func HasWriter(path string) bool {
	f, info, err := openRegular(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return BeingWritten(f, info)
}

// BeingWritten reports whether a process has the file open for writing. The kernel grants a read
// lease only if none has; the lease is given back at once, as a writer would wait for it. Where
// leases are not available, a file that was just modified counts as being written.
func BeingWritten(f *os.File, info os.FileInfo) bool {
	conn, err := f.SyscallConn()
	if err != nil {
		return false
	}
	var leaseErr error
	err = conn.Control(func(fd uintptr) {
		if _, leaseErr = unix.FcntlInt(fd, unix.F_SETLEASE, unix.F_RDLCK); leaseErr == nil {
			_, _ = unix.FcntlInt(fd, unix.F_SETLEASE, unix.F_UNLCK)
		}
	})
	switch {
	case err == nil && leaseErr == nil:
		return false
	case errors.Is(leaseErr, unix.EAGAIN):
		return true
	}
	age := time.Since(info.ModTime())
	return age >= 0 && age < fresh
}
