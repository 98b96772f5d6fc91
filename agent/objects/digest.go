package objects

import (
	"crypto/sha256"
	"io"
	"maps"
	"slices"
	"strconv"
	"sync"
	"unicode/utf8"

	"monopod/manifests"
)

// sum is a digest of the parts of an object that are used.
type sum [sha256.Size]byte

// maxSums bounds the stored digests, as they include those of pods that are gone.
const maxSums = 10_000

// sums caches the digests of unchanged objects: a worker needs them in each of its passes. Any
// goroutine may use it.
type sums struct {
	mu  sync.Mutex
	all map[use]sum
}

// use is what one pod uses of one content of an object.
type use struct {
	object *manifests.Object // nil: it does not exist
	key    manifests.ObjectKey
	salt   string
	refs   sum // of the references, in order
}

func (s *sums) of(u use, compute func() sum) sum {
	known, is := s.get(u)
	if is {
		return known
	}
	made := compute() // without the lock: it may take a moment
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil || len(s.all) >= maxSums {
		s.all = map[use]sum{}
	}
	s.all[u] = made
	return made
}

func (s *sums) get(u use) (sum, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, is := s.all[u]
	return known, is
}

// keep drops the digests of objects that are not in the set.
func (s *sums) keep(now *Set) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.all, func(u use, _ sum) bool { return u.object != now.get(u.key) })
}

// digest returns a digest of what the references use of an object. Containers have it in an
// annotation, so the hashed bytes must never change.
func (s *Set) digest(salt string, key manifests.ObjectKey, refs []ref) sum {
	o := s.get(key)
	compute := func() (out sum) {
		h := sha256.New()
		io.WriteString(h, salt+"\x00")
		for _, r := range refs {
			writeUsed(h, o, r.keys)
			if r.file {
				writeBinary(h, o, r.keys)
			}
		}
		h.Sum(out[:0])
		return out
	}
	if s == nil {
		return compute()
	}
	return s.sums.of(use{o, key, salt, sumOf(refs)}, compute)
}

// sumOf returns a digest that distinguishes references to one object.
func sumOf(refs []ref) (out sum) {
	h := sha256.New()
	for _, r := range refs {
		for _, key := range r.keys {
			io.WriteString(h, key+"\x00")
		}
		io.WriteString(h, "\x01")
		if r.file {
			io.WriteString(h, "\x02")
		}
	}
	h.Sum(out[:0])
	return out
}

// writeUsed writes what a reference uses of its object, all or those of the keys that exist, in the
// format of fmt's %q for a map[string]string.
func writeUsed(w io.Writer, o *manifests.Object, only []string) {
	switch {
	case o == nil:
		io.WriteString(w, "none;")
	case o.Secret != nil:
		writeMap(w, o.Secret.Data, only)
	default:
		writeMap(w, o.ConfigMap.Data, only)
	}
}

// writeBinary writes the binaryData that a volume shows in addition.
func writeBinary(w io.Writer, o *manifests.Object, only []string) {
	if o != nil && o.ConfigMap != nil {
		writeMap(w, o.ConfigMap.BinaryData, only)
	}
}

func writeMap[V string | []byte](w io.Writer, data map[string]V, only []string) {
	keys := slices.Clone(only)
	if len(only) == 0 {
		keys = slices.Collect(maps.Keys(data))
	}
	keys = slices.DeleteFunc(keys, func(key string) bool { _, is := data[key]; return !is })
	slices.Sort(keys)
	io.WriteString(w, "map[")
	for k, key := range slices.Compact(keys) {
		if k > 0 {
			io.WriteString(w, " ")
		}
		io.WriteString(w, strconv.Quote(key)+":\"")
		writeQuoted(w, data[key])
		io.WriteString(w, "\"")
	}
	io.WriteString(w, "];")
}

// writeQuoted writes a value escaped as in Go's quotes, without the quotes, piece by piece: it may
// be large.
func writeQuoted[V string | []byte](w io.Writer, value V) {
	const piece = 4 << 10
	var quoted []byte
	for len(value) > 0 {
		n := min(len(value), piece)
		for back := 0; n < len(value) && back < utf8.UTFMax; back++ { // do not split a rune
			if utf8.RuneStart(value[n-back]) {
				n -= back
				break
			}
		}
		quoted = strconv.AppendQuote(quoted[:0], string(value[:n]))
		w.Write(quoted[1 : len(quoted)-1])
		value = value[n:]
	}
}
