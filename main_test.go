package main

import (
	"maps"
	"testing"
)

func TestNodeLabels(t *testing.T) {
	rows := []struct {
		list string
		want map[string]string // nil: refused
	}{
		{"", map[string]string{}},
		{"disk=ssd", map[string]string{"disk": "ssd"}},
		{"disk=ssd, example.com/rack=7,", map[string]string{"disk": "ssd", "example.com/rack": "7"}},
		{"bare=", map[string]string{"bare": ""}},
		{"bare", nil},
		{"a=1,a=2", nil},
	}
	for _, row := range rows {
		got, err := nodeLabels(row.list)
		if (err != nil) != (row.want == nil) || err == nil && !maps.Equal(got, row.want) {
			t.Errorf("%q: %v, %v; want %v", row.list, got, err, row.want)
		}
	}
}
