package agent

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
)

// life is an agent's connection to the runtime, and how to end it as kill -9
// does: all calls are cut at once, and what the agent still writes to disk is
// undone by bury.
type life struct {
	conn      grpc.ClientConnInterface
	end       context.CancelFunc // of the agent
	line      context.Context    // of its calls
	cut       context.CancelFunc
	dir, kept string // the root dir, and where a copy of it is as the agent left it
	once      sync.Once
	over      atomic.Bool
	mangle    func(args, reply any) // is called before each call, without a reply, and changes its answer; nil: nothing is
	copied    func() bool           // whether the test itself has made that copy, which is the agent's death; nil: it does not
}

func newLife(conn grpc.ClientConnInterface, dir string, end context.CancelFunc) *life {
	l := &life{conn: conn, dir: dir, kept: dir + ".kept", end: end}
	l.line, l.cut = context.WithCancel(context.Background())
	return l
}

func (l *life) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.line, cancel)()
	if l.isOver() {
		return context.Canceled
	}
	if l.mangle != nil {
		l.mangle(args, nil)
	}
	err := l.conn.Invoke(ctx, method, args, reply, opts...)
	if err == nil && l.mangle != nil {
		l.mangle(args, reply)
	}
	return err
}

func (l *life) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	ctx, cancel := context.WithCancel(ctx)
	context.AfterFunc(l.line, cancel)
	if l.isOver() {
		return nil, context.Canceled
	}
	return l.conn.NewStream(ctx, desc, method, opts...)
}

// cutOff kills the agent. It may be called within one of its calls; what has
// ended already is not killed. bury must follow.
func (l *life) cutOff() {
	l.once.Do(func() {
		l.cut()
		l.end()
		if err := copyTree(l.dir, l.kept); err != nil {
			panic(err)
		}
		l.over.Store(true)
	})
}

// isOver reports whether the agent was killed. One whose root dir the test copied dies by
// that: none of its calls comes through any more.
func (l *life) isOver() bool {
	if l.copied != nil && l.copied() {
		l.once.Do(func() {
			l.cut()
			l.end()
			l.over.Store(true)
		})
	}
	return l.over.Load()
}

// bury waits for what is left of an agent that was cut off.
func (r *rig) bury() {
	r.Helper()
	r.stop()
	r.stop = func() {}
	restore := func() error { return errors.Join(os.RemoveAll(r.dir), moveTree(r.life.kept, r.dir)) }
	if r.whole == nil {
		noErr(r.T, restore())
		return
	}
	noErr(r.T, r.whole(restore))
}

// moveTree moves a folder, to another disk too.
func moveTree(from, to string) error {
	if os.Rename(from, to) == nil {
		return nil
	}
	return errors.Join(copyTree(from, to), os.RemoveAll(from))
}

// kill is kill -9.
func (r *rig) kill() {
	r.life.cutOff()
	r.bury()
}

// copyTree copies a folder that somebody may be changing.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(from, path)
		if d.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o750)
		}
		if d.Type()&fs.ModeSymlink != 0 {
			target, err := os.Readlink(path)
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return errors.Join(err, os.Symlink(target, filepath.Join(to, rel)))
		}
		b, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), b, 0o666)
	})
}

// quickDir returns a folder in memory where there is one, for tests that write and
// sync thousands of files.
func quickDir(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "monopod-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
