package cri

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// List remembers the last answer of a list call that is made again and again: what is
// listed as it was is not decoded again. The zero value remembers nothing yet. It is
// for one goroutine at a time; what it returned is shared and must not be changed.
type List[T any] struct {
	seed  maphash.Seed
	known map[uint64]*T // elements of the last answer, by the hash of their bytes
	sum   uint64        // of all hashes: runtimes list in any order
	count int
	full  bool // there was an answer
}

// ListContainers lists as Containers does and reports whether anything differs from the
// last answer that l saw. If nothing does and look is true, it returns no containers.
func (c *Client) ListContainers(ctx context.Context, labels map[string]string, l *List[rt.Container], look bool) (all []*rt.Container, changed bool, err error) {
	d := &listDecoder[rt.Container, *rt.Container]{codec: protobuf(), list: l, look: look}
	do := func(ctx context.Context, in *rt.ListContainersRequest, _ ...grpc.CallOption) (*rt.ListContainersResponse, error) {
		return c.runtime.ListContainers(ctx, in, grpc.ForceCodecV2(d))
	}
	r, err := call(ctx, "ListContainers", "", c.Timeouts.Query, do,
		&rt.ListContainersRequest{Filter: &rt.ContainerFilter{LabelSelector: labels}})
	all = d.answer(r.GetContainers())
	if err == nil {
		err = named(all, "ListContainers", "container", hasName)
	}
	return all, d.changed(), d.keep(err)
}

// ListSandboxes is the same for sandboxes.
func (c *Client) ListSandboxes(ctx context.Context, labels map[string]string, l *List[rt.PodSandbox], look bool) (all []*rt.PodSandbox, changed bool, err error) {
	d := &listDecoder[rt.PodSandbox, *rt.PodSandbox]{codec: protobuf(), list: l, look: look}
	do := func(ctx context.Context, in *rt.ListPodSandboxRequest, _ ...grpc.CallOption) (*rt.ListPodSandboxResponse, error) {
		return c.runtime.ListPodSandbox(ctx, in, grpc.ForceCodecV2(d))
	}
	r, err := call(ctx, "ListPodSandbox", "", c.Timeouts.Query, do,
		&rt.ListPodSandboxRequest{Filter: &rt.PodSandboxFilter{LabelSelector: labels}})
	all = d.answer(r.GetItems())
	if err == nil {
		err = named(all, "ListPodSandbox", "sandbox", sandboxHasName)
	}
	return all, d.changed(), d.keep(err)
}

// listDecoder decodes one answer, straight from the buffers that it was received into:
// the usual codec would copy it into one first, of a megabyte for a busy node.
type listDecoder[T any, P interface {
	*T
	proto.Message
}] struct {
	codec
	list *List[T]
	look bool // nothing is decoded if nothing has changed

	read  bool // there was an answer to decode: a connection without a wire has no codec
	all   []*T
	known map[uint64]*T
	sum   uint64
	count int
}

// Unmarshal decodes an answer whose first field is the list.
func (d *listDecoder[T, P]) Unmarshal(data mem.BufferSlice, _ any) error {
	if !d.list.full {
		d.list.seed = maphash.MakeSeed()
	}
	var hashes []uint64
	err := eachElement(data, func(one []byte) error {
		hash, err := hashOf(d.list.seed, one)
		hashes, d.sum = append(hashes, hash), d.sum+hash
		return err
	})
	d.read, d.count = true, len(hashes)
	if err != nil || d.look && !d.changed() {
		return err
	}
	d.all, d.known = make([]*T, 0, len(hashes)), make(map[uint64]*T, len(hashes))
	return eachElement(data, func(bytes []byte) error {
		hash := hashes[len(d.all)]
		one := d.list.known[hash]
		if one == nil {
			one = new(T)
			if err := proto.Unmarshal(bytes, P(one)); err != nil {
				return err
			}
		}
		d.all, d.known[hash] = append(d.all, one), one
		return nil
	})
}

// answer returns what was decoded, or what a connection without a wire gave.
func (d *listDecoder[T, P]) answer(direct []*T) []*T {
	if d.read {
		return d.all
	}
	return direct
}

// changed reports whether the answer differs from the last one, as far as is known.
func (d *listDecoder[T, P]) changed() bool {
	return !d.read || !d.list.full || d.sum != d.list.sum || d.count != d.list.count
}

// keep lets the list remember the answer, unless there is an error, which it returns.
func (d *listDecoder[T, P]) keep(err error) error {
	if err == nil && d.read {
		d.list.full, d.list.sum, d.list.count = true, d.sum, d.count
		if d.known != nil {
			d.list.known = d.known
		}
	}
	return err
}

// hashOf returns the hash of an element. It is the same whatever the order of its fields,
// of which each entry of a map is one: runtimes encode maps in any order.
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
	return maphash.Comparable(seed, sum), nil // else two elements could swap fields unseen
}

// eachElement calls do with the bytes of each element of a message's first field. They
// are valid during the call.
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

// readBytes reads the length of a field and peeks at its bytes, which are those of the
// reader, or in scratch if they came in several buffers.
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
