package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/choice"
)

// cell is the value of a setting.
type cell interface {
	in() any                             // a pointer for the value of a file
	take(dir string, n note) (good bool) // takes the value of a file in dir, if it has a valid one
	parse(by, text string) error         // takes the text of a flag; by names it in errors
	get() any                            // as in the Config
	set(v any)                           // to what get of such a cell returned; nil: to the default
}

// note reports a bad value. at is the part of it, such as [0] or [key]; err may
// be nil.
type note func(at string, err error)

// noEffect is an error about something that is accepted all the same.
type noEffect string

func (n noEffect) Error() string { return string(n) }

// field is a cell whose value is a T.
type field[T any] struct {
	to       *T
	fallback T    // the default; as in KubeletConfiguration the zero value stands for it
	zero     bool // no, it is a value of its own
	target   any  // see in
	given    func() *T
	check    func(T, note)
	adjust   func(dir string, v T) T
	read     func(by, text string) (T, error)
}

func (f *field[T]) in() any  { return f.target }
func (f *field[T]) get() any { return *f.to }

func (f *field[T]) set(v any) {
	*f.to = f.fallback
	if v != nil {
		*f.to = v.(T)
	}
}

func (f *field[T]) take(dir string, n note) (good bool) {
	given := f.given()
	if given == nil {
		return false
	}
	good = true
	f.check(*given, func(at string, err error) {
		_, harmless := err.(noEffect)
		good = good && (err == nil || harmless)
		n(at, err)
	})
	if good {
		f.put(f.adjust(dir, *given))
	}
	return good
}

func (f *field[T]) parse(by, text string) error {
	v, err := f.read(by, text)
	if err == nil {
		f.put(v)
	}
	return err
}

func (f *field[T]) put(v T) {
	*f.to = v
	if !f.zero && reflect.ValueOf(&v).Elem().IsZero() {
		*f.to = f.fallback
	}
}

// value is a value that check validates; a nil check accepts all.
func value[T any](to *T, fallback T, check func(T) error) *field[T] {
	var given *T
	f := &field[T]{to: to, fallback: fallback, target: &given, given: func() *T { return given },
		check: func(T, note) {}, adjust: func(_ string, v T) T { return v }}
	if check != nil {
		f.check = func(v T, n note) { n("", check(v)) }
	}
	return f
}

func boolean(to *bool, fallback bool) *field[bool] {
	f := value(to, fallback, nil)
	f.zero = true
	f.read = func(by, text string) (bool, error) {
		v, err := strconv.ParseBool(text)
		if err != nil {
			err = fmt.Errorf("%s %q: give true or false", by, text)
		}
		return v, err
	}
	return f
}

// duration is a time from low to high, or 0, which means the default.
func duration(to *time.Duration, fallback, low, high time.Duration) *field[time.Duration] {
	fits := within(low, high, fmt.Sprintf("must be between %s and %s", low, high))
	f := value(to, fallback, func(d time.Duration) error {
		if d == 0 {
			return nil
		}
		return fits(d)
	})
	var given *metav1.Duration
	f.target, f.given = &given, func() *time.Duration {
		if given == nil {
			return nil
		}
		return &given.Duration
	}
	return f
}

// text is a string. The error of its flag quotes it.
func text(to *string, fallback string, check func(string) error) *field[string] {
	f := value(to, fallback, check)
	f.read = func(by, text string) (string, error) {
		if check != nil && text != "" {
			if err := check(text); err != nil {
				return "", fmt.Errorf("%s %q: %w", by, text, err)
			}
		}
		return text, nil
	}
	return f
}

// path is a path. In a file it may be relative to the file.
func path(to *string, fallback string) *field[string] {
	f := text(to, fallback, nil)
	f.adjust = func(dir, p string) string {
		if p == "" || filepath.IsAbs(p) {
			return p
		}
		return filepath.Join(dir, p)
	}
	f.read = func(_, text string) (string, error) {
		if text == "" {
			return fallback, nil
		}
		return filepath.Abs(text)
	}
	return f
}

// paths is path for several, with a comma between.
func paths(to *string) *field[string] {
	f := text(to, "", nil)
	f.adjust = func(dir, list string) string {
		var all []string
		for p := range strings.SplitSeq(list, ",") {
			if p != "" && !filepath.IsAbs(p) {
				p = filepath.Join(dir, p)
			}
			all = append(all, p)
		}
		return strings.Join(all, ",")
	}
	f.read = func(_, text string) (string, error) {
		dir, err := filepath.Abs("")
		if text == "" || err != nil {
			return "", err
		}
		return f.adjust(dir, text), nil
	}
	return f
}

// orNone makes "" a value that is not the default.
func orNone(f *field[string]) *field[string] {
	f.zero = true
	return f
}

// one is one of a few words.
func one(to *string, fallback string, words ...string) *field[string] {
	check := func(v string) error {
		if v != "" && !choice.Words(words).Has(v) {
			return errors.New("choose " + choice.Words(words).String())
		}
		return nil
	}
	return text(to, fallback, check)
}

// unquoted keeps the text of a flag out of its error.
func unquoted(f *field[string]) *field[string] {
	f.read = func(by, text string) (value string, err error) {
		f.check(text, func(_ string, wrong error) { err = wrong })
		if text != "" && err != nil {
			return "", fmt.Errorf("%s %w", by, err)
		}
		return text, nil
	}
	return f
}

// onLoopback has the default in place of an address that is not of the loopback.
func onLoopback(f *field[string]) *field[string] {
	f.adjust = func(_, v string) string {
		if loopback(v) != nil {
			return f.fallback
		}
		return v
	}
	return f
}

// anyCase accepts capitals, too.
func anyCase(f *field[string]) *field[string] {
	check, read := f.check, f.read
	f.check = func(v string, n note) { check(strings.ToLower(v), n) }
	f.adjust = func(_, v string) string { return strings.ToLower(v) }
	f.read = func(by, text string) (string, error) { return read(by, strings.ToLower(text)) }
	return f
}

// items is values that are checked one by one.
func items[T any](to *[]T, check func(T) error) *field[[]T] {
	f := value(to, nil, nil)
	f.check = func(all []T, n note) {
		for k, one := range all {
			n(fmt.Sprintf("[%d]", k), check(one))
		}
	}
	return f
}

// list is strings that are checked one by one.
func list(to *[]string, fallback []string, check func(string) error) *field[[]string] {
	f := items(to, check)
	f.fallback = fallback
	return f
}

// byKey is values by key that are checked one by one.
func byKey[M ~map[K]V, K ~string, V any](to *M, check func(K, V) error) *field[M] {
	f := value(to, nil, nil)
	f.check = func(m M, n note) {
		for _, key := range slices.SortedFunc(maps.Keys(m), cmp.Compare[K]) {
			n(fmt.Sprintf("[%s]", key), check(key, m[key]))
		}
	}
	return f
}

// labels is labels of the node. Its flag is k=v,k=v.
func labels(to *map[string]string) *field[map[string]string] {
	f := byKey(to, label)
	f.read = func(by, text string) (map[string]string, error) {
		out := map[string]string{}
		for part := range strings.SplitSeq(text, ",") {
			if part = strings.TrimSpace(part); part == "" {
				continue
			}
			key, value, ok := strings.Cut(part, "=")
			if _, twice := out[key]; !ok || twice {
				return nil, fmt.Errorf("%s %q: write each label once, as key=value", by, part)
			}
			if err := label(key, value); err != nil {
				return nil, fmt.Errorf("node label %q: %w; see %s", part, err, by)
			}
			out[key] = value
		}
		return out, nil
	}
	return f
}
