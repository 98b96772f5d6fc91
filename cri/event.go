package cri

import (
	"bytes"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// The fields of a ContainerEventResponse that say all about a pod and its containers.
const (
	eventSandbox    = 4
	eventContainers = 5
)

// eventCodec decodes an event without its sandbox and containers if a text stands nowhere in it: a
// runtime sends the events of all its pods, also of those of other clients.
type eventCodec struct {
	codec
	whole string // "": all events are decoded whole
}

// Unmarshal decodes a ContainerEventResponse.
func (c eventCodec) Unmarshal(data mem.BufferSlice, v any) error {
	m, isMessage := v.(proto.Message)
	text := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer text.Free()
	if !isMessage || bytes.Contains(text.ReadOnlyData(), []byte(c.whole)) {
		return c.codec.Unmarshal(data, v)
	}
	head, err := eventHead(text.ReadOnlyData())
	if err != nil {
		return err
	}
	return proto.Unmarshal(head, m)
}

// eventHead returns an event without its sandbox and containers.
func eventHead(event []byte) (head []byte, err error) {
	for len(event) > 0 {
		number, _, n := protowire.ConsumeField(event)
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		if number != eventSandbox && number != eventContainers {
			head = append(head, event[:n]...)
		}
		event = event[n:]
	}
	return head, nil
}
