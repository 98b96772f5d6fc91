package command

import (
	"bytes"
	"errors"
	"testing"
)

func TestAnErrorIsBrokenBetweenWords(t *testing.T) {
	err := errors.New("default/web is not updated and will not be: update rolled back: version 0123456789ab (web:2): it crashed within 30s; its last output:\n" +
		"    app: cannot open /etc/app/settings.yaml: no such file or directory, and no other is named by --settings")
	for columns, want := range map[int]string{
		0: "monopod: " + err.Error(),
		80: `monopod: default/web is not updated and will not be: update rolled back: version
  0123456789ab (web:2): it crashed within 30s; its last output:
    app: cannot open /etc/app/settings.yaml: no such file or directory, and no
      other is named by --settings`,
		140: `monopod: default/web is not updated and will not be: update rolled back: version 0123456789ab (web:2): it crashed within 30s; its last
  output:
    app: cannot open /etc/app/settings.yaml: no such file or directory, and no other is named by --settings`,
	} {
		if got := errorText(err, columns); got != want {
			t.Errorf("at %d:\n%s", columns, got)
		}
	}
	var out bytes.Buffer
	Say(&out, nil)
	Say(&out, errors.New(""))
	Say(&out, errors.New("no"))
	if out.String() != "monopod: no\n" {
		t.Errorf("said %q", out.String())
	}
}
