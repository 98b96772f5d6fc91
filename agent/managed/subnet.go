package managed

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math/bits"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
)

// private are the networks for which subnets are looked for in turn, see RFC 1918.
var private = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("172.16.0.0/12"), netip.MustParsePrefix("192.168.0.0/16")}

// FreeSubnet returns a subnet of that many bits that overlaps none of used. pick chooses a number below its
// argument, where the search begins: two that search at the same time shall find different ones.
func FreeSubnet(used []netip.Prefix, bits int, pick func(int) int) (netip.Prefix, error) {
	for _, in := range private {
		count := 1 << (bits - in.Bits())
		start := pick(count)
		for k := range count {
			p := nthSubnet(in, bits, (start+k)%count)
			if !slices.ContainsFunc(used, p.Overlaps) {
				return p, nil
			}
		}
	}
	return netip.Prefix{}, fmt.Errorf("no private subnet is free of this machine's routes and addresses: give pods a network with a file in %s", machineConf)
}

func nthSubnet(in netip.Prefix, bits, n int) netip.Prefix {
	a := in.Addr().As4()
	binary.BigEndian.PutUint32(a[:], binary.BigEndian.Uint32(a[:])+uint32(n)<<(32-bits))
	return netip.PrefixFrom(netip.AddrFrom4(a), bits)
}

// UsedPrefixes returns what pods must be able to reach beside their own subnet, and what this
// machine has: the destinations of its routes, its addresses and its name servers. Those that
// programs of the machine ask need not be those of pods: more are the files with these.
func UsedPrefixes(more ...string) (used []netip.Prefix, err error) {
	routes, err := os.Open("/proc/net/route")
	if err != nil {
		return nil, fmt.Errorf("routes of this machine: %w", err)
	}
	defer routes.Close()
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("addresses of this machine: %w", err)
	}
	used = parseRoutes(routes)
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			used = append(used, p)
		}
	}
	for _, path := range append([]string{"/etc/resolv.conf"}, more...) {
		if servers, err := os.Open(path); err == nil {
			used = append(used, parseServers(servers)...)
			servers.Close()
		}
	}
	return used, nil
}

// parseRoutes reads the main routing table of IPv4, without the default route, also where a VPN
// replaces it by routes for the halves of it. Those are wider than any private network.
func parseRoutes(r io.Reader) (used []netip.Prefix) {
	for s := bufio.NewScanner(r); s.Scan(); {
		col := strings.Fields(s.Text()) // Iface Destination Gateway Flags RefCnt Use Metric Mask ...
		if len(col) < 8 {
			continue
		}
		dst, err1 := strconv.ParseUint(col[1], 16, 32)
		mask, err2 := strconv.ParseUint(col[7], 16, 32)
		length := bits.OnesCount32(uint32(mask))
		if err1 != nil || err2 != nil || length < private[0].Bits() {
			continue
		}
		var a [4]byte
		binary.NativeEndian.PutUint32(a[:], uint32(dst))
		used = append(used, netip.PrefixFrom(netip.AddrFrom4(a), length))
	}
	return used
}

// parseServers reads the name servers of a resolv.conf.
func parseServers(r io.Reader) (used []netip.Prefix) {
	for s := bufio.NewScanner(r); s.Scan(); {
		col := strings.Fields(s.Text())
		if len(col) < 2 || col[0] != "nameserver" {
			continue
		}
		if a, err := netip.ParseAddr(col[1]); err == nil {
			used = append(used, netip.PrefixFrom(a, a.BitLen()))
		}
	}
	return used
}
