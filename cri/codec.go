package cri

import "google.golang.org/grpc/encoding"

// codec is gRPC's own codec of messages, to which other codecs here add a way to decode an answer.
// It has no name: with a name, the content type of a call is application/grpc+proto, and CRI-O
// closes a connection whose first call is not of application/grpc (cmd/crio/main.go).
type codec struct{ encoding.CodecV2 }

func protobuf() codec { return codec{encoding.GetCodecV2("proto")} }

// Name returns the empty name, as calls without a codec of their own have it.
func (codec) Name() string { return "" }
