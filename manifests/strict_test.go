package manifests

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"monopod/manifests/decode"
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
		{"a file with a name that a shell would obey", func(dir string) error {
			path := filepath.Join(dir, "$(reboot).yaml")
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				return err
			}
			return os.Chmod(path, 0o666)
		}, []string{"DIR/$(reboot).yaml: may be written by other users (mode 0666), who can run anything here as root by it: chmod go-w 'DIR/$(reboot).yaml'"}},
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
		}, []string{"DIR.far: may be written by other users (mode 1777), who can run anything here as root once it was cleaned up: keep manifests elsewhere than DIR/b.yaml"}},
		{"no folder", os.RemoveAll, nil},
		{"the folder above by all", func(dir string) error { return os.Chmod(filepath.Dir(dir), 0o777) },
			[]string{"UP: may be written by other users (mode 0777), who can run anything here as root by it: chmod go-w UP, or keep manifests elsewhere than DIR"}},
		{"the folder above of another, and no folder", func(dir string) error { return errors.Join(os.RemoveAll(dir), os.Chown(filepath.Dir(dir), 1234, 0)) },
			[]string{"UP: belongs to user 1234, who can run anything here as root by it: chown root UP, or keep manifests elsewhere than DIR"}},
		{"the folder above where a file's link leads", func(dir string) error {
			return errors.Join(os.MkdirAll(dir+".far/safe", 0o755), os.Chown(dir+".far", 1234, 0), os.WriteFile(dir+".far/safe/b.yaml", nil, 0o600), os.Symlink(dir+".far/safe/b.yaml", dir+"/b.yaml"))
		}, []string{"DIR.far: belongs to user 1234"}},
		{"a folder with a link, of which sshd sees only where it leads", func(dir string) error {
			return errors.Join(os.Mkdir(dir+".far", 0o755), os.Chown(dir+".far", 1234, 0), os.WriteFile(dir+".safe", nil, 0o600),
				os.Symlink("../"+filepath.Base(dir)+".safe", dir+".far/link"), os.Symlink(dir+".far/link", dir+"/b.yaml"))
		}, []string{"DIR.far: belongs to user 1234"}},
		{"the folder is a link in a folder of another", func(dir string) error {
			return errors.Join(os.Rename(dir, dir+".safe"), os.Mkdir(dir+".far", 0o755), os.Chown(dir+".far", 1234, 0),
				os.Symlink(dir+".safe", dir+".far/current"), os.Symlink(dir+".far/current", dir))
		}, []string{"DIR.far: belongs to user 1234"}},
		{"a link of another where all may write, with the root dir beside it", func(dir string) error {
			up := filepath.Dir(dir)
			return errors.Join(os.Chmod(up, 0o777|os.ModeSticky), os.Rename(dir, dir+".safe"), os.Symlink(dir+".safe", dir), os.Lchown(dir, 1234, 0))
		}, []string{"DIR: belongs to user 1234, who can run anything here as root by it: chown -h root DIR, or keep"}},
		{"a link in a circle", func(dir string) error { return os.Symlink("b.yaml", dir+"/b.yaml") }, nil},
		{"words of a shell", func(dir string) error {
			return errors.Join(os.WriteFile(dir+"/a; b's.yaml", nil, 0o600), os.Chmod(dir+"/a; b's.yaml", 0o606))
		}, []string{`DIR/a; b's.yaml: may be written by other users (mode 0606), who can run anything here as root by it: chmod go-w 'DIR/a; b'\''s.yaml'`}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			up := t.TempDir()
			dir := filepath.Join(up, "m")
			must(t, os.Mkdir(dir, 0o755))
			must(t, os.WriteFile(dir+"/a.yaml", nil, 0o644))
			must(t, row.prepare(dir))
			var got []string
			for _, p := range Writable(dir, filepath.Join(up, "root")) {
				text := strings.ReplaceAll(p.File+": "+p.Message, dir, "DIR")
				got = append(got, strings.ReplaceAll(text, up, "UP"))
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

// What a folder with the sticky bit holds cannot be replaced, but for one that was cleaned up:
// an agent whose root dir is in it is a new one then.
func TestAFolderWithTheStickyBitIsForTrialsAlone(t *testing.T) {
	up := t.TempDir()
	dir := filepath.Join(up, "m")
	must(t, errors.Join(os.Mkdir(dir, 0o755), os.Chmod(up, 0o777|os.ModeSticky)))
	if found := Writable(dir, filepath.Join(up, "root")); len(found) != 0 {
		t.Errorf("with the root dir beside the manifests: %v", found)
	}
	found := Writable(dir, "/var/lib/monopod")
	if !slices.ContainsFunc(found, func(p decode.Problem) bool { return p.File == up && strings.Contains(p.Message, "mode 1777") }) {
		t.Errorf("with the root dir elsewhere: %v", found)
	}
}

// A folder that others may write is read; that is said beside it, and proves removals.
func TestASourceWarnsOfWhatOthersMayWrite(t *testing.T) {
	strict := func(c *SourceConfig) { c.Strict, c.Root = true, c.Dir+".root" }
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
