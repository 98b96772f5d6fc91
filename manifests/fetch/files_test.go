package fetch

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A file of the request on a file system that gives no answer is the problem of the requests,
// and does not end the asking.
func TestAFileThatHangsIsAProblem(t *testing.T) {
	url := server(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, pod) })
	for name, set := range map[string]func(s *Settings, path string){
		"manifestURLTokenFile": func(s *Settings, path string) { s.TokenFile = path },
		"manifestURLCAFile":    func(s *Settings, path string) { s.CAFile = path },
	} {
		dir := t.TempDir()
		disk, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
		if err == nil {
			err = unix.Mount("monopod-test", dir, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", disk.Fd()))
		}
		if err != nil {
			t.Skipf("a file system that hangs needs root and FUSE: %v", err)
		}
		heal := func() { disk.Close(); _ = unix.Unmount(dir, unix.MNT_DETACH) }
		t.Cleanup(heal)
		s := Settings{URL: url}
		set(&s, filepath.Join(dir, "x"))
		f := New(s)
		for range 3 {
			begin := time.Now()
			a, _ := f.poll(t.Context())
			if !strings.Contains(a.Problem, name) || !strings.Contains(a.Problem, "gives no answer") || time.Since(begin) > 3*patience {
				t.Errorf("%s: %q after %s", name, a.Problem, time.Since(begin))
			}
		}
		heal()
	}
}
