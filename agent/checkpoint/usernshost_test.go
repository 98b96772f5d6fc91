package checkpoint

import (
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
)

func TestSubordinateIDsOfTheUserKubelet(t *testing.T) {
	const whole = "which must be whole ranges of 65536 above the first"
	for _, row := range []struct {
		name, text string
		want       IdRange
		why        string
	}{
		{"one range", "0: kubelet 65536 7208960\n", IdRange{65536, 7208960}, ""},
		{"one for a single pod", "0: kubelet 131072 65536", IdRange{131072, 65536}, ""},
		{"one up to the last id", "0: kubelet 65536 4294901760", IdRange{65536, 4294901760}, ""},
		{"one beyond the last id", "0: kubelet 131072 4294901760", IdRange{}, "has the subordinate ids 131072 to 4295032831, " + whole},
		{"one with the machine's own users", "0: kubelet 0 65536", IdRange{}, "has the subordinate ids 0 to 65535, " + whole},
		{"one that begins amid a range", "0: kubelet 65537 65536", IdRange{}, whole},
		{"one that ends amid a range", "0: kubelet 65536 65537", IdRange{}, whole},
		{"an empty one", "0: kubelet 65536 0", IdRange{}, whole},
		{"two ranges", "0: kubelet 65536 65536\n1: kubelet 131072 65536\n", IdRange{}, "has 2 ranges of subordinate ids, which must be one"},
		{"no numbers", "0: kubelet\n", IdRange{}, "is not understood"},
		{"nothing", "", IdRange{}, "is not understood"},
	} {
		got, err := ParseSubIDs(row.text)
		if got != row.want || (err == nil) != (row.why == "") || err != nil && !strings.Contains(err.Error(), row.why) {
			t.Errorf("%s: %+v, %v", row.name, got, err)
		}
	}
}

func TestTheToolThatKnowsSubordinateIDsIsAsked(t *testing.T) {
	tool := filepath.Join(t.TempDir(), "getsubids")
	if err := os.WriteFile(tool, []byte("#!/bin/sh\n[ \"$1\" = kubelet ] && echo '0: kubelet 65536 65536'\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got, err := askSubIDs(tool, "kubelet"); got != (IdRange{65536, 65536}) || err != nil {
		t.Errorf("it says %+v, %v", got, err)
	}
	if _, err := askSubIDs(tool, "-g", "kubelet"); err == nil || !strings.Contains(err.Error(), "getsubids -g kubelet: exit status 1") {
		t.Errorf("it fails: %v", err)
	}
	if _, err := user.Lookup("kubelet"); err != nil {
		if got, err := subIDs(); got != allIDs() || err != nil {
			t.Errorf("without a user kubelet: %+v, %v", got, err)
		}
	}
}
