package cri

import (
	"bytes"
	"runtime"
	"testing"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// pieces are data in many small buffers, as they are received.
func pieces(data []byte, size int) (out mem.BufferSlice) {
	for len(data) > 0 {
		n := min(size, len(data))
		out = append(out, mem.SliceBuffer(data[:n]))
		data = data[n:]
	}
	return out
}

func TestTheCodecReadsWhatProtobufReads(t *testing.T) {
	for name, a := range map[string]*rt.ExecSyncResponse{
		"nothing":         {},
		"all":             {Stdout: []byte("out"), Stderr: []byte("err"), ExitCode: 3},
		"a negative code": {ExitCode: -1},
		"the most":        {Stdout: bytes.Repeat([]byte("o"), execHead+execTail), Stderr: []byte("err"), ExitCode: 137},
	} {
		data, err := proto.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		data = protowire.AppendTag(data, 9, protowire.Fixed32Type) // what a later runtime may add
		data = protowire.AppendFixed32(data, 1)
		data = protowire.AppendTag(data, 10, protowire.Fixed64Type)
		data = protowire.AppendFixed64(data, 1)
		data = protowire.AppendTag(data, 11, protowire.BytesType)
		data = protowire.AppendString(data, "more")
		for _, size := range []int{1, 7, len(data)} {
			got := &rt.ExecSyncResponse{}
			if err := (execCodec{}).Unmarshal(pieces(data, size), got); err != nil || !bytes.Equal(got.Stdout, a.Stdout) || !bytes.Equal(got.Stderr, a.Stderr) || got.ExitCode != a.ExitCode {
				t.Errorf("%s, in pieces of %d: %v, code %d, %.20q, %.20q", name, size, err, got.ExitCode, got.Stdout, got.Stderr)
			}
		}
	}
}

func TestTheCodecRefusesWhatIsCutOff(t *testing.T) {
	whole, err := proto.Marshal(&rt.ExecSyncResponse{Stdout: bytes.Repeat([]byte("o"), 20<<10), Stderr: []byte("err"), ExitCode: 300})
	if err != nil {
		t.Fatal(err)
	}
	fields := map[int]bool{0: true, len(whole) - 3: true, len(whole) - 8: true} // where one ends a message is whole
	for n := range whole {
		if err := (execCodec{}).Unmarshal(pieces(whole[:n], 4<<10), &rt.ExecSyncResponse{}); (err == nil) != fields[n] {
			t.Errorf("%d of %d bytes: %v", n, len(whole), err)
		}
	}
	if err := (execCodec{}).Unmarshal(pieces([]byte{0x0b}, 1), &rt.ExecSyncResponse{}); err == nil {
		t.Error("a group is read")
	}
}

// The usual codec takes more than twice the size of the answer.
func TestDecodingALoudAnswerCostsLittle(t *testing.T) {
	data, err := proto.Marshal(&rt.ExecSyncResponse{Stdout: bytes.Repeat([]byte("o"), 12<<20)})
	if err != nil {
		t.Fatal(err)
	}
	received := pieces(data, 16<<10)
	cost := func(decode func(*rt.ExecSyncResponse) error) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if err := decode(&rt.ExecSyncResponse{}); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	usual := cost(func(a *rt.ExecSyncResponse) error { return encoding.GetCodecV2("proto").Unmarshal(received, a) })
	ours := cost(func(a *rt.ExecSyncResponse) error { return execCodec{}.Unmarshal(received, a) })
	if t.Logf("%d bytes, by the usual codec %d", ours, usual); ours > 128<<10 || usual < 12<<20 {
		t.Errorf("decoding 12 MiB takes %d bytes, by the usual codec %d", ours, usual)
	}
}
