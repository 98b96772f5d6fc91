package support

// Tail keeps the end of what is written to it: twice MaxPart bytes, so that a value is hidden before
// a part is shortened. The zero value is empty.
type Tail struct {
	kept []byte
	cut  bool
}

const tailSize = 2 * MaxPart

// Write never fails.
func (t *Tail) Write(b []byte) (int, error) {
	written := len(b)
	if len(b) > tailSize {
		t.kept, b, t.cut = t.kept[:0], b[len(b)-tailSize:], true
	}
	t.kept = append(t.kept, b...)
	if len(t.kept) > 2*tailSize { // moved only then, and so seldom
		t.drop()
	}
	return written, nil
}

func (t *Tail) drop() {
	if over := len(t.kept) - tailSize; over > 0 {
		t.kept, t.cut = append(t.kept[:0], t.kept[over:]...), true
	}
}

// Part returns a part with what is kept.
func (t *Tail) Part(name, what string, err error) Part {
	t.drop()
	return Part{Name: name, What: what, Text: string(t.kept), Err: err, Cut: t.cut}
}
