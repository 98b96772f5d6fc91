package manifests

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Whoever writes a manifest is root here: like sshd, we say who else may.
func TestWritableNamesWhatOthersMayWrite(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, who alone may give files away")
	}
	rows := []struct {
		name    string
		prepare func(dir string) error
		want    []string // "file: beginning of the text", DIR is the folder
	}{
		{"nobody else", func(dir string) error { return nil }, nil},
		{"the folder by all", func(dir string) error { return os.Chmod(dir, 0o777) }, []string{"DIR: may be written by other users (mode 0777), who can run anything here as root by it: chmod go-w DIR"}},
		{"the folder by its group", func(dir string) error { return os.Chmod(dir, 0o775) }, []string{"DIR: may be written by other users (mode 0775)"}},
		{"a folder whose sticky bit lets others add", func(dir string) error { return os.Chmod(dir, 0o777|os.ModeSticky) }, []string{"DIR: may be written by other users"}},
		{"the folder of another", func(dir string) error { return os.Chown(dir, 1234, 0) }, []string{"DIR: belongs to user 1234, who can run anything here as root by it: chown root DIR"}},
		{"a file by all", func(dir string) error { return os.Chmod(dir+"/a.yaml", 0o666) }, []string{"DIR/a.yaml: may be written by other users (mode 0666)"}},
		{"a file of another", func(dir string) error { return os.Chown(dir+"/a.yaml", 1234, 0) }, []string{"DIR/a.yaml: belongs to user 1234"}},
		{"no manifest", func(dir string) error { return os.WriteFile(dir+"/a.txt", nil, 0o666) }, nil},
		{"what a link leads to", func(dir string) error {
			return errors.Join(os.WriteFile(dir+".b", nil, 0o600), os.Chmod(dir+".b", 0o666), os.Symlink(dir+".b", dir+"/b.yaml"))
		}, []string{"DIR.b: may be written by other users (mode 0666)"}},
		{"the folder that a link leads to", func(dir string) error {
			return errors.Join(os.Mkdir(dir+".far", 0o755), os.Chmod(dir+".far", 0o777), os.WriteFile(dir+".far/b.yaml", nil, 0o600), os.Symlink(dir+".far/b.yaml", dir+"/b.yaml"))
		}, []string{"DIR.far: may be written by other users (mode 0777)"}},
		{"a sticky folder that a link leads to", func(dir string) error {
			return errors.Join(os.Mkdir(dir+".far", 0o755), os.Chmod(dir+".far", 0o777|os.ModeSticky), os.WriteFile(dir+".far/b.yaml", nil, 0o600), os.Symlink(dir+".far/b.yaml", dir+"/b.yaml"))
		}, nil},
		{"no folder", os.RemoveAll, nil},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "m")
			must(t, os.Mkdir(dir, 0o755))
			must(t, os.WriteFile(dir+"/a.yaml", nil, 0o644))
			must(t, row.prepare(dir))
			var got []string
			for _, p := range Writable(dir) {
				got = append(got, strings.ReplaceAll(p.File+": "+p.Message, dir, "DIR"))
			}
			if len(got) != len(row.want) {
				t.Fatalf("got %q, want %q", got, row.want)
			}
			for k := range got {
				if !strings.HasPrefix(got[k], row.want[k]) {
					t.Errorf("got %q, want %q", got[k], row.want[k])
				}
			}
		})
	}
}

// A folder that others may write is read; that is said beside it, and proves removals.
func TestASourceWarnsOfWhatOthersMayWrite(t *testing.T) {
	strict := func(c *SourceConfig) { c.Strict = true }
	p := at(t, t.TempDir(), strict)
	p.place("a.yaml", mapYAML("x", "1"))
	must(t, os.Chmod(p.dir, 0o777))
	p.lookAgain().hasObjects("x@a.yaml=1")
	if all := p.last.Problems; len(all) != 1 || !all[0].Warning || all[0].File != p.dir || !p.last.Complete {
		t.Errorf("problems %v, complete %v", all, p.last.Complete)
	}
	must(t, os.Remove(p.dir+"/a.yaml"))
	p.lookAgain().hasObjects("")
	must(t, os.Chmod(p.dir, 0o755))
	p.lookAgain()
	if all := p.last.Problems; len(all) != 0 {
		t.Errorf("problems %v", all)
	}
	must(t, os.Chmod(p.dir, 0o777))
	if lax := at(t, p.dir, nil); len(lax.last.Problems) != 0 {
		t.Errorf("problems %v", lax.last.Problems)
	}
}

func TestASecretThatOthersMayReadIsAWarning(t *testing.T) {
	p := at(t, t.TempDir(), nil)
	secret := "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n"
	p.place("a.yaml", mapYAML("x", "1")+"---\n"+secret)
	if all := p.last.Files[0].Problems; len(all) != 0 {
		t.Errorf("problems %v", all)
	}
	must(t, os.Chmod(p.dir+"/a.yaml", 0o640))
	p.lookAgain().hasObjects("x@a.yaml=1 s@a.yaml=")
	if all := p.last.Files[0].Problems; len(all) != 1 || !all[0].Warning ||
		all[0].Error() != p.dir+"/a.yaml:6:1: holds a Secret, and other users may read it (mode 0640): chmod go-r "+p.dir+"/a.yaml" {
		t.Errorf("problems %v", all)
	}
	p.place("a.yaml", mapYAML("x", "1"))
	if all := p.last.Files[0].Problems; len(all) != 0 {
		t.Errorf("problems %v", all)
	}
}
