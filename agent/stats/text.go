package stats

import (
	"bytes"
	"strconv"
	"strings"
	"time"
)

// text writes metrics in Prometheus' text format, version 0.0.4.
type text struct {
	bytes.Buffer
	head string // of a metric without a value so far
}

const textType = "text/plain; version=0.0.4; charset=utf-8"

// label is a name and its value.
type label struct{ name, value string }

const (
	counter = "counter"
	gauge   = "gauge"
)

// family starts a metric. All its values must be written before the next one starts; a metric
// without any is left out.
func (t *text) family(name, kind, help string) {
	t.head = "# HELP " + name + " " + help + "\n# TYPE " + name + " " + kind + "\n"
}

var escape = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

// value writes one value; a zero time is left out.
func (t *text) value(name string, labels []label, v float64, at time.Time) {
	t.WriteString(t.head)
	t.head = ""
	t.WriteString(name)
	for i, l := range labels {
		if i == 0 {
			t.WriteByte('{')
		} else {
			t.WriteByte(',')
		}
		t.WriteString(l.name)
		t.WriteString(`="`)
		escape.WriteString(t, strings.ToValidUTF8(l.value, "\uFFFD")) // one value that is not refuses the whole scrape
		t.WriteByte('"')
	}
	if len(labels) > 0 {
		t.WriteByte('}')
	}
	t.WriteByte(' ')
	t.Write(strconv.AppendFloat(t.AvailableBuffer(), v, 'g', -1, 64))
	if !at.IsZero() {
		t.WriteByte(' ')
		t.Write(strconv.AppendInt(t.AvailableBuffer(), at.UnixMilli(), 10))
	}
	t.WriteByte('\n')
}
