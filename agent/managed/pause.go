package managed

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// The program of sandboxes. It has no libraries, and is the first process of its namespace:
//
//	sigaction(SIGCHLD, SIG_IGN)                    // the kernel removes children that have ended
//	sigprocmask(SIG_BLOCK, {SIGINT, SIGTERM})      // a first process gets only blocked signals
//	do n = sigtimedwait({SIGINT, SIGTERM}, forever) while n <= 0
//	exit_group(0)
//
// Its data, behind the code: a struct sigaction of the kernel's (handler SIG_IGN, which is 1, and
// zeros), and a set of the signals 2 and 15.
var pauseData = append(append([]byte{1}, make([]byte, 31)...), 0x02, 0x40, 0, 0, 0, 0, 0, 0)

const actionSize = 32 // of pauseData

// pauseProgram returns the program as an ELF file for an architecture, in Go's name.
func pauseProgram(arch string) ([]byte, error) {
	switch arch {
	case "amd64":
		return executable(machineAMD64, pauseAMD64()), nil
	case "arm64":
		return executable(machineARM64, pauseARM64()), nil
	}
	return nil, fmt.Errorf("monopod has no image of sandboxes for %s", arch)
}

// pauseAMD64 is the program for amd64. Calls are numbered in rax, and take rdi, rsi, rdx and r10.
func pauseAMD64() []byte {
	code := []byte{
		0xbf, 17, 0, 0, 0, // mov edi, SIGCHLD
		0x48, 0x8d, 0x35, 54, 0, 0, 0, // lea rsi, [action]
		0x31, 0xd2, // xor edx, edx
		0x6a, 8, 0x41, 0x5a, // push 8; pop r10
		0x6a, 13, 0x58, // push rt_sigaction; pop rax
		0x0f, 0x05, // syscall

		0x31, 0xff, // xor edi, edi (SIG_BLOCK)
		0x48, 0x8d, 0x35, 66, 0, 0, 0, // lea rsi, [signals]
		0x6a, 14, 0x58, // push rt_sigprocmask; pop rax
		0x0f, 0x05, // syscall, which leaves rdx and r10

		0x48, 0x8d, 0x3d, 54, 0, 0, 0, // wait: lea rdi, [signals]
		0x31, 0xf6, // xor esi, esi
		0xb8, 128, 0, 0, 0, // mov eax, rt_sigtimedwait
		0x0f, 0x05, // syscall
		0x85, 0xc0, // test eax, eax
		0x7e, 0xec, // jle wait

		0x31, 0xff, // xor edi, edi
		0xb8, 231, 0, 0, 0, // mov eax, exit_group
		0x0f, 0x05, // syscall
	}
	return append(code, pauseData...)
}

// pauseARM64 is the program for arm64. Calls are numbered in x8, and take x0 to x3.
func pauseARM64() []byte {
	const words = 23
	var code []byte
	emit := func(all ...uint32) {
		for _, w := range all {
			code = binary.LittleEndian.AppendUint32(code, w)
		}
	}
	mov := func(reg, value uint32) uint32 { return 0xd2800000 | value<<5 | reg }
	adr := func(reg uint32, data int) uint32 { // the address of that byte of the data
		off := uint32(words*4 + data - len(code))
		return 0x10000000 | off&3<<29 | off>>2<<5 | reg
	}
	const svc = 0xd4000001
	emit(mov(0, 17))
	emit(adr(1, 0))
	emit(mov(2, 0), mov(3, 8), mov(8, 134), svc) // rt_sigaction
	emit(mov(0, 0))
	emit(adr(1, actionSize))
	emit(mov(2, 0), mov(3, 8), mov(8, 135), svc) // rt_sigprocmask
	emit(adr(0, actionSize))
	emit(mov(1, 0), mov(2, 0), mov(3, 8), mov(8, 137), svc) // rt_sigtimedwait
	const cmpX0, branchLE, back = 0xf100001f, 0x5400000d, 7
	emit(cmpX0, branchLE|uint32(1<<19-back)<<5)
	emit(mov(0, 0), mov(8, 94), svc) // exit_group
	return append(code, pauseData...)
}

// Machines of ELF files, see elf(5).
const (
	machineAMD64 = 62
	machineARM64 = 183
)

// executable returns an executable whose code is its whole content behind the headers.
func executable(machine uint16, code []byte) []byte {
	const (
		header, program = 64, 56 // sizes
		base            = 0x400000
		page            = 0x10000 // the largest of arm64
	)
	size := uint64(header + program + len(code))
	var out bytes.Buffer
	out.WriteString("\x7fELF\x02\x01\x01" + string(make([]byte, 9))) // 64 bits, little endian
	for _, v := range []any{
		uint16(2), machine, uint32(1), uint64(base + header + program), uint64(header), uint64(0), // executable, entry, program headers
		uint32(0), uint16(header), uint16(program), uint16(1), uint16(0), uint16(0), uint16(0),
		uint32(1), uint32(5), uint64(0), uint64(base), uint64(base), size, size, uint64(page), // PT_LOAD, readable and executable
	} {
		_ = binary.Write(&out, binary.LittleEndian, v) // a Buffer takes all
	}
	out.Write(code)
	return out.Bytes()
}
