package cri

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"io"
	"maps"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// List keeps the last answer of a repeated list call, so that only the elements of the next answer
// that differ are decoded. The zero value has no answer yet. One goroutine at a time may use it.
type List[T any] struct {
	seed   maphash.Seed
	known  map[uint64]element[T] // elements of the last answer, by the hash of their bytes
	sum    uint64                // of all hashes: runtimes list in any order
	count  int
	full   bool     // there was an answer
	round  uint64   // counts the answers that were decoded
	hashes []uint64 // memory for those of an answer
	direct []*T     // the last answer of a connection without a wire
}

// element is one element of an answer, and the last round that had it.
type element[T any] struct {
	one   *T
	round uint64
}

// mark records that the present round has an element, and reports whether the list knew it.
func (l *List[T]) mark(hash uint64) (isKnown bool) {
	e, isKnown := l.known[hash]
	if isKnown {
		l.known[hash] = element[T]{e.one, l.round}
	}
	return isKnown
}

// Changes are the differences between two answers of a list call. An unchanged element is the same
// pointer in every answer and shared by all callers: it must not be changed.
type Changes[T any] struct {
	Added, Gone []*T // a changed element is in both, as it is and as it was
	Any         bool // anything differs

	list  *List[T]
	added map[uint64]*T // Added, by hash
	sum   uint64
	count int
	read  bool // there was an answer to decode: a connection without a wire has no codec
}

// Keep stores the answer in the list. Without it, the next answer is compared with the one that was
// stored last.
func (c *Changes[T]) Keep() {
	l := c.list
	if !c.read {
		l.direct = c.Added
		return
	}
	l.full, l.sum, l.count = true, c.sum, c.count
	if len(c.Gone) > 0 {
		maps.DeleteFunc(l.known, func(_ uint64, e element[T]) bool { return e.round != l.round })
	}
	if l.known == nil {
		l.known = make(map[uint64]element[T], len(c.added))
	}
	for hash, one := range c.added {
		l.known[hash] = element[T]{one, l.round}
	}
}

// ListContainers lists as Containers does, and returns the differences from the last answer in l.
func (c *Client) ListContainers(ctx context.Context, labels map[string]string, l *List[rt.Container]) (*Changes[rt.Container], error) {
	d := &listDecoder[rt.Container, *rt.Container]{codec: protobuf(), changes: &Changes[rt.Container]{list: l}}
	do := func(ctx context.Context, in *rt.ListContainersRequest, _ ...grpc.CallOption) (*rt.ListContainersResponse, error) {
		return c.runtime.ListContainers(ctx, in, grpc.ForceCodecV2(d))
	}
	r, err := call(ctx, "ListContainers", "", c.asks("ListContainers"), do,
		&rt.ListContainersRequest{Filter: &rt.ContainerFilter{LabelSelector: labels}})
	if err != nil {
		return nil, err
	}
	d.changes.takeDirect(r.GetContainers())
	return d.changes, named(d.changes.Added, "ListContainers", "container", hasName)
}

// ListSandboxes does the same for sandboxes.
func (c *Client) ListSandboxes(ctx context.Context, labels map[string]string, l *List[rt.PodSandbox]) (*Changes[rt.PodSandbox], error) {
	d := &listDecoder[rt.PodSandbox, *rt.PodSandbox]{codec: protobuf(), changes: &Changes[rt.PodSandbox]{list: l}}
	do := func(ctx context.Context, in *rt.ListPodSandboxRequest, _ ...grpc.CallOption) (*rt.ListPodSandboxResponse, error) {
		return c.runtime.ListPodSandbox(ctx, in, grpc.ForceCodecV2(d))
	}
	r, err := call(ctx, "ListPodSandbox", "", c.asks("ListPodSandbox"), do,
		&rt.ListPodSandboxRequest{Filter: &rt.PodSandboxFilter{LabelSelector: labels}})
	if err != nil {
		return nil, err
	}
	d.changes.takeDirect(r.GetItems())
	return d.changes, named(d.changes.Added, "ListPodSandbox", "sandbox", sandboxHasName)
}

// takeDirect stores the answer of a connection without a wire: all elements count as new.
func (c *Changes[T]) takeDirect(all []*T) {
	if !c.read {
		c.Added, c.Gone, c.Any = all, c.list.direct, true
	}
}

// listDecoder decodes one answer directly from the receive buffers: the usual codec would first
// copy it into a single one, a megabyte on a busy node.
type listDecoder[T any, P interface {
	*T
	proto.Message
}] struct {
	codec
	changes *Changes[T]
}

// Unmarshal decodes an answer whose first field is the list.
func (d *listDecoder[T, P]) Unmarshal(data mem.BufferSlice, _ any) error {
	c, l := d.changes, d.changes.list
	if !l.full {
		l.seed = maphash.MakeSeed()
	}
	l.hashes = l.hashes[:0]
	err := eachElement(data, func(one []byte) error {
		hash, err := hashOf(l.seed, one)
		l.hashes, c.sum = append(l.hashes, hash), c.sum+hash
		return err
	})
	c.read, c.count = true, len(l.hashes)
	c.Any = !l.full || c.sum != l.sum || c.count != l.count
	if err != nil || !c.Any {
		return err
	}
	return d.decode(data)
}

// decode decodes the elements that the previous answer did not have, and finds those that this one
// lacks.
func (d *listDecoder[T, P]) decode(data mem.BufferSlice) error {
	c, l := d.changes, d.changes.list
	l.round++
	c.added = map[uint64]*T{}
	at := 0
	err := eachElement(data, func(bytes []byte) error {
		hash := l.hashes[at]
		at++
		if l.mark(hash) || c.added[hash] != nil {
			return nil
		}
		one := new(T)
		c.Added, c.added[hash] = append(c.Added, one), one
		return proto.Unmarshal(bytes, P(one))
	})
	for _, e := range l.known {
		if e.round != l.round {
			c.Gone = append(c.Gone, e.one)
		}
	}
	return err
}

// hashOf returns the hash of an element. It does not depend on the order of the fields; each entry
// of a map is a field of its own, and runtimes encode maps in any order.
func hashOf(seed maphash.Seed, element []byte) (uint64, error) {
	var sum uint64
	for len(element) > 0 {
		_, _, n := protowire.ConsumeField(element)
		if n < 0 {
			return 0, protowire.ParseError(n)
		}
		sum += maphash.Bytes(seed, element[:n])
		element = element[n:]
	}
	return maphash.Comparable(seed, sum), nil // else two elements could swap fields unnoticed
}

// eachElement calls do with the bytes of each element of a message's first field. The bytes are
// valid during the call only.
func eachElement(data mem.BufferSlice, do func(element []byte) error) (err error) {
	r := data.Reader()
	defer r.Close()
	var scratch []byte
	for r.Remaining() > 0 && err == nil {
		var tag uint64
		if tag, err = binary.ReadUvarint(r); err != nil {
			break
		}
		number, kind := protowire.DecodeTag(tag)
		if kind != protowire.BytesType {
			err = skipNumber(r, kind)
			continue
		}
		var element []byte
		if element, scratch, err = readBytes(r, scratch); err == nil && number == 1 {
			err = do(element)
		}
		if err == nil {
			err = skip(r, len(element))
		}
	}
	if err != nil {
		return fmt.Errorf("answer of a list: %w", err)
	}
	return nil
}

// readBytes reads the length of a field and peeks at its bytes. These belong to the reader, or to
// scratch if they came in several buffers.
func readBytes(r *mem.Reader, scratch []byte) (field, grown []byte, err error) {
	n, err := binary.ReadUvarint(r)
	if err != nil || n > uint64(r.Remaining()) {
		return nil, scratch, cmp.Or(err, io.ErrUnexpectedEOF)
	}
	var some [4][]byte
	parts, err := r.Peek(int(n), some[:0])
	if err != nil || len(parts) == 0 {
		return nil, scratch, err
	}
	if len(parts) == 1 {
		return parts[0], scratch, nil
	}
	scratch = scratch[:0]
	for _, p := range parts {
		scratch = append(scratch, p...)
	}
	return scratch, scratch, nil
}
