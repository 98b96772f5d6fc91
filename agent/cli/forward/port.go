package forward

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Port is a port of this machine, and the pod's port behind it.
type Port struct {
	Local  uint16 // 0: a free one
	Remote uint16
}

// ParsePort reads [LOCAL:]REMOTE. named returns the pod's port of that name, or an error.
func ParsePort(text string, named func(name string) (uint16, error)) (p Port, err error) {
	local, remote, both := strings.Cut(text, ":")
	if !both {
		remote = local
	}
	n, numbered := number(remote)
	if !numbered && !isName(remote) || strings.Contains(remote, ":") {
		return p, fmt.Errorf("%q is no port: want [LOCAL:]REMOTE, such as 8080:80, 80 or :80", text)
	}
	if !numbered {
		if n, err = named(remote); err != nil {
			return p, err
		}
	}
	p = Port{n, n}
	if both {
		p.Local, numbered = number(local)
		if !numbered && local != "" {
			return p, fmt.Errorf("%q: %q is no port of this machine: want a number up to 65535", text, local)
		}
	}
	if p.Remote == 0 {
		return p, fmt.Errorf("%q: the pod's port must be more than 0", text)
	}
	return p, nil
}

// isName reports whether a text can be the name of a port: it has a letter.
func isName(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return r >= 'a' && r <= 'z' })
}

func number(text string) (uint16, bool) {
	n, err := strconv.ParseUint(text, 10, 16)
	return uint16(n), err == nil
}

// address is an address to listen on. Of those of localhost one is enough.
type address struct {
	network, host string
	optional      bool
}

// addressesOf reads IP addresses, several of them separated by commas, and localhost.
func addressesOf(texts []string) (all []address, err error) {
	seen := map[string]bool{}
	add := func(a address) {
		if !seen[a.host] {
			all = append(all, a)
		}
		seen[a.host] = true
	}
	for _, text := range strings.Split(strings.Join(texts, ","), ",") {
		ip, err := netip.ParseAddr(text)
		switch {
		case text == "localhost":
			add(address{"tcp4", "127.0.0.1", true})
			add(address{"tcp6", "::1", true})
		case err != nil:
			return nil, fmt.Errorf("%q is no address to listen on: want an IP address or localhost", text)
		case ip.Is4():
			add(address{"tcp4", ip.String(), false})
		default:
			add(address{"tcp6", ip.String(), false})
		}
	}
	return all, nil
}

// CheckAddresses rejects texts that are no addresses to listen on.
func CheckAddresses(texts []string) error {
	_, err := addressesOf(texts)
	return err
}
