package rig

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// subnetBits leaves addresses for a thousand pods.
const subnetBits = 22

// freeSubnet picks a subnet under 10.0.0.0/8 that no interface and no route covers.
func freeSubnet() (netip.Prefix, error) {
	used, err := usedPrefixes()
	if err != nil {
		return netip.Prefix{}, err
	}
	start := rand.IntN(1 << 16)
	for i := range 1 << 16 {
		k := (start + i) % (1 << 16)
		p := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(k >> 8), byte(k), 0}), subnetBits).Masked()
		free := true
		for _, u := range used {
			free = free && !u.Overlaps(p)
		}
		if free {
			return p, nil
		}
	}
	return netip.Prefix{}, fmt.Errorf("no free /%d under 10.0.0.0/8", subnetBits)
}

// usedPrefixes returns the destinations of the main IPv4 routing table except the
// default route; those of the interfaces are among them.
func usedPrefixes() ([]netip.Prefix, error) {
	f, err := os.Open("/proc/net/route")
	if err != nil {
		return nil, fmt.Errorf("read routes: %w", err)
	}
	defer f.Close()
	var used []netip.Prefix
	for s := bufio.NewScanner(f); s.Scan(); {
		col := strings.Fields(s.Text()) // Iface Destination Gateway Flags RefCnt Use Metric Mask ...
		if len(col) < 8 {
			continue
		}
		dst, err1 := strconv.ParseUint(col[1], 16, 32)
		mask, err2 := strconv.ParseUint(col[7], 16, 32)
		if err1 != nil || err2 != nil || mask == 0 {
			continue
		}
		var a, m [4]byte
		binary.LittleEndian.PutUint32(a[:], uint32(dst))
		binary.LittleEndian.PutUint32(m[:], uint32(mask))
		ones, _ := net.IPMask(m[:]).Size()
		used = append(used, netip.PrefixFrom(netip.AddrFrom4(a), ones))
	}
	return used, nil
}
