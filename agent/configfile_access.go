package agent

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"slices"
	"strings"
)

// tlsVersions are the versions of TLS that can be asked for, by the names that
// KubeletConfiguration has for them.
var tlsVersions = map[string]uint16{"VersionTLS12": tls.VersionTLS12, "VersionTLS13": tls.VersionTLS13}

// logLevels are what can be logged from.
var logLevels = map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}

// LogLevel returns the level of that name.
func LogLevel(name string) (slog.Level, error) {
	level, ok := logLevels[strings.ToLower(name)]
	if !ok {
		return 0, fmt.Errorf("%q: choose debug, info, warn or error", name)
	}
	return level, nil
}

// access takes who may use the TCP address.
func (r *configReader) access() {
	f, to := &r.file, &r.to.Access
	r.path(&to.Cert, f.TLSCertFile)
	r.path(&to.Key, f.TLSPrivateKeyFile)
	r.path(&to.Tokens, f.TokenFile)
	if a := f.Authentication; a != nil {
		if a.X509 != nil {
			r.path(&to.ClientCA, a.X509.ClientCAFile)
		}
		if a.Anonymous {
			r.Warn("authentication.anonymous", "has no effect here")
		}
		if a.Webhook {
			r.Warn("authentication.webhook", "has no effect here")
		}
	}
	if v := f.TLSMinVersion; v != nil && *v != "" {
		if tlsVersions[*v] == 0 {
			r.Refuse("tlsMinVersion", "%q: choose VersionTLS12 or VersionTLS13", *v)
		}
		to.MinVersion = tlsVersions[*v]
	}
	if f.TLSCipherSuites != nil {
		to.CipherSuites = nil
	}
	for k, name := range f.TLSCipherSuites {
		all := tls.CipherSuites()
		i := slices.IndexFunc(all, func(c *tls.CipherSuite) bool { return c.Name == name })
		if i < 0 {
			r.Refuse(fmt.Sprintf("tlsCipherSuites[%d]", k), "%q is none of the ciphers that are safe, such as %s", name, all[len(all)-1].Name)
			continue
		}
		to.CipherSuites = append(to.CipherSuites, all[i].ID)
	}
}

// logging takes what is logged.
func (r *configReader) logging() {
	if name := r.file.LogLevel; name != nil {
		level, err := LogLevel(*name)
		if err != nil {
			r.Refuse("logLevel", "%v", err)
		}
		r.to.LogLevel = level
	}
}
