package podlog

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"
)

// Stdout's fourth letter is o and stderr's is e.
func TestRead(t *testing.T) {
	const s1, s2, s3 = ".20260504-120010", ".20260504-120020", ".20260504-120030"
	rotated := map[string]string{
		"0.log" + s1 + ".gz": script(0, "o:a o:b"), "0.log" + s2 + ".gz": script(2, "o:c e:d"),
		"0.log" + s3: script(4, "o:e o:f"), "0.log": script(6, "e:g o:h"),
	}
	restarted := map[string]string{"0.log": script(0, "o:a"), "1.log": script(1, "o:b O:c"), "2.log" + s1: script(3, "o:d"), "2.log": script(4, "o:e"), "10.log": script(5, "o:f")}
	parts := map[string]string{"0.log": script(0, "o:a O:b E:x o:c e:y O:d O:e o:f")}
	rows := []struct {
		name  string
		files map[string]string
		o     Options
		want  string
	}{
		{"one file", map[string]string{"0.log": script(0, "o:a e:b o:c")}, Options{}, "o:a e:b o:c"},
		{"an empty file", map[string]string{"0.log": ""}, Options{}, ""},
		{"all that was set aside", rotated, Options{}, "o:a o:b o:c e:d o:e o:f e:g o:h"},
		{"both forms of a file while it is compressed", map[string]string{"0.log" + s1: script(0, "o:a"), "0.log" + s1 + ".gz": script(0, "o:a"), "0.log" + s2 + ".tmp": "x", "0.log": ""}, Options{}, "o:a"},
		{"others' files", map[string]string{"0.log": script(0, "o:a"), "0.log.1": "x", "x.log": "x", "0.log.20260504-1200.gz": "x"}, Options{}, "o:a"},
		{"a stream", rotated, Options{Stream: Stderr}, "e:d e:g"},
		{"the newest attempt", restarted, Options{}, "o:f"},
		{"the previous attempt", restarted, Options{Which: Previous}, "o:d o:e"},
		{"one attempt", restarted, Options{Which: Only, Attempt: 1}, "o:b o:c+"},
		{"all attempts", restarted, Options{Which: All}, "o:a o:b o:c+ o:d o:e o:f"},
		{"parts of lines", parts, Options{}, "o:a o:bc e:xy o:def"},
		{"parts of one stream's lines", parts, Options{Stream: Stdout}, "o:a o:bc o:def"},
		{"parts across files", map[string]string{"0.log" + s1: script(0, "o:a O:b"), "0.log": script(2, "O:c o:d")}, Options{}, "o:a o:bcd"},
		{"a line without an end", map[string]string{"0.log": script(0, "o:a O:b O:c")}, Options{}, "o:a o:bc+"},
		{"half an entry", map[string]string{"0.log": script(0, "o:a") + strings.TrimSuffix(script(1, "o:bcd"), "cd\n")}, Options{}, "o:a o:b+"},
		{"what a crash of the machine leaves", map[string]string{"0.log": script(0, "o:a") + "\x00\x00\x00" + script(1, "o:b")}, Options{}, "o:a o:b"},
		{"another form", map[string]string{"0.log": "what\n" + script(1, "o:b")}, Options{}, "o:what o:b"},
		{"Docker's form", map[string]string{"0.log": `{"log":"a\n","stream":"stderr","time":"2026-05-04T12:00:00Z"}` + "\n" + `{"log":"b","stream":"stdout","time":"2026-05-04T12:00:00Z"}` + "\n"}, Options{}, "e:a o:b+"},
		{"more tags", map[string]string{"0.log": "2026-05-04T12:00:00+02:00 stdout P:x a\n2026-05-04T12:00:00+02:00 stdout F:y b\n"}, Options{}, "o:ab"},
		{"empty lines", map[string]string{"0.log": "2026-05-04T12:00:00Z stdout F \n2026-05-04T12:00:00Z stdout F\n"}, Options{}, "o: o:"},
		{"since", rotated, Options{Since: epoch.Add(3 * time.Second)}, "e:d o:e o:f e:g o:h"},
		{"since is of a line's beginning", parts, Options{Since: epoch.Add(2 * time.Second)}, "e:xy o:def"},
		{"tail 0", rotated, Options{Tail: ptr(0)}, ""},
		{"tail 1", rotated, Options{Tail: ptr(1)}, "o:h"},
		{"tail over files", rotated, Options{Tail: ptr(3)}, "o:f e:g o:h"},
		{"tail within a compressed file", rotated, Options{Tail: ptr(5)}, "e:d o:e o:f e:g o:h"},
		{"tail of a compressed file", rotated, Options{Tail: ptr(6)}, "o:c e:d o:e o:f e:g o:h"},
		{"tail of all but one", rotated, Options{Tail: ptr(7)}, "o:b o:c e:d o:e o:f e:g o:h"},
		{"tail of more than there is", rotated, Options{Tail: ptr(99)}, "o:a o:b o:c e:d o:e o:f e:g o:h"},
		{"tail of a stream", rotated, Options{Tail: ptr(2), Stream: Stderr}, "e:d e:g"},
		{"tail and since", rotated, Options{Tail: ptr(3), Since: epoch.Add(6 * time.Second)}, "e:g o:h"},
		{"tail of attempts", restarted, Options{Which: All, Tail: ptr(4)}, "o:c+ o:d o:e o:f"},
		{"tail of attempts that are compressed", map[string]string{"0.log" + s1 + ".gz": script(0, "O:a"), "1.log" + s1 + ".gz": script(1, "o:b o:c")}, Options{Which: All, Tail: ptr(2)}, "o:b o:c"},
		{"tail of an attempt's end that is compressed", map[string]string{"0.log" + s1 + ".gz": script(0, "o:a O:b"), "1.log": script(2, "o:c")}, Options{Which: All, Tail: ptr(2)}, "o:b+ o:c"},
		{"tail of the previous attempt", restarted, Options{Which: Previous, Tail: ptr(1)}, "o:e"},
		{"tail counts lines, not parts", parts, Options{Tail: ptr(1)}, "o:def"},
		{"tail of lines that interleave", parts, Options{Tail: ptr(2)}, "e:xy o:def"},
		{"tail of lines that interleave, from within", parts, Options{Tail: ptr(3)}, "o:bc e:xy o:def"},
		{"tail of a line without an end", map[string]string{"0.log": script(0, "o:a O:b O:c")}, Options{Tail: ptr(1)}, "o:bc+"},
		{"tail of parts across files", map[string]string{"0.log" + s1 + ".gz": script(0, "o:a O:b"), "0.log": script(2, "O:c o:d")}, Options{Tail: ptr(1)}, "o:bcd"},
		{"tail behind a compressed log whose last line was cut off", map[string]string{"0.log" + s1 + ".gz": strings.TrimSuffix(script(0, "o:a o:b o:c"), "\n"), "0.log": script(3, "o:d")}, Options{Tail: ptr(2)}, "o:c o:d"},
		{"follow to the end", rotated, Options{Follow: true, Ended: ended()}, "o:a o:b o:c e:d o:e o:f e:g o:h"},
		{"follow the tail to the end", rotated, Options{Follow: true, Tail: ptr(3), Ended: ended()}, "o:f e:g o:h"},
		{"follow all attempts to the end", restarted, Options{Follow: true, Which: All, Ended: ended()}, "o:a o:b o:c+ o:d o:e o:f"},
		{"follow what never comes", nil, Options{Follow: true, Ended: ended()}, ""},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			got, err := readAll(t, folder(t, row.files), row.o)
			if err != nil || got != row.want {
				t.Errorf("read %q, %v\nwant %q", got, err, row.want)
			}
		})
	}
}

func TestNothingToRead(t *testing.T) {
	one := map[string]string{"3.log": script(0, "o:a")}
	for _, row := range []struct {
		name  string
		files map[string]string
		o     Options
	}{
		{"an empty folder", nil, Options{}},
		{"an empty folder's tail", nil, Options{Tail: ptr(1)}},
		{"no previous attempt", one, Options{Which: Previous}},
		{"no such attempt", one, Options{Which: Only, Attempt: 2}},
	} {
		if got, err := readAll(t, folder(t, row.files), row.o); got != "" || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: read %q, %v", row.name, got, err)
		}
	}
	if _, err := readAll(t, t.TempDir()+"/none", Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
}

// A compressed log that is damaged is read as far as it goes, then what follows.
func TestADamagedLog(t *testing.T) {
	dir := folder(t, map[string]string{"0.log.20260504-120010.gz": script(0, strings.Repeat("o:a ", 9)), "0.log": script(9, "o:b")})
	truncate(t, dir+"/0.log.20260504-120010.gz")
	for _, o := range []Options{{}, {Tail: ptr(50)}} {
		got, err := readAll(t, dir, o)
		if !strings.HasSuffix(got, "o:b") || err == nil || !strings.Contains(err.Error(), "120010.gz is damaged") {
			t.Errorf("read %q, %v", got, err)
		}
	}
}

// However long a line is and however it is written, all of it comes, in pieces.
func TestAGiantLine(t *testing.T) {
	text := strings.Repeat("0123456789", LineMax/4) // 2.5 times as long as may be
	var inParts strings.Builder
	for k := 0; k < len(text); k += 16 << 10 {
		inParts.WriteString(entryOf(k, Stdout, "P", text[k:min(k+16<<10, len(text))]))
	}
	for _, row := range []struct {
		name, file string
		o          Options
	}{
		{"in one entry", script(0, "o:a") + entryOf(1, Stdout, "F", text) + script(2, "o:b"), Options{}},
		{"in parts", script(0, "o:a") + inParts.String() + script(2, "o: o:b"), Options{}},
		{"in one entry, the tail", script(0, "o:x o:a") + entryOf(1, Stdout, "F", text) + script(2, "o:b"), Options{Tail: ptr(3)}},
		{"in parts, the tail", script(0, "o:x o:a") + inParts.String() + script(2, "o: o:b"), Options{Tail: ptr(3)}},
	} {
		t.Run(row.name, func(t *testing.T) {
			var pieces []Line
			var all string
			err := Read(t.Context(), folder(t, map[string]string{"0.log": row.file}), row.o, func(l Line) error {
				if len(l.Text) > LineMax {
					t.Errorf("a piece of %d bytes", len(l.Text))
				}
				all += string(l.Text)
				if !l.Partial {
					all += "|"
				}
				pieces = append(pieces, l)
				return nil
			})
			if err != nil || all != "a|"+text+"|b|" {
				t.Fatalf("read %d bytes in %d pieces, %v", len(all), len(pieces), err)
			}
			for k, l := range pieces[1:4] {
				if l.Partial != (k < 2) || l.Continued != (k > 0) {
					t.Errorf("piece %d: %v %v", k, l.Partial, l.Continued)
				}
			}
		})
	}
}
