// Command components stands in for the programs of a control plane that kubeadm has run: under the
// name of each it answers the probes that kubeadm writes, and needs the certificates that it names.
package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log"
	"math/big"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

func main() {
	log.SetFlags(0)
	name, flags := filepath.Base(os.Args[0]), map[string]string{}
	for _, arg := range os.Args[1:] {
		key, value, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		flags[key] = value
	}
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM)
	go func() { <-end; os.Exit(0) }()
	log.Fatalf("%s: %v", name, serve(name, flags))
}

// serve answers on the port of a component.
func serve(name string, flags map[string]string) error {
	ok := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	switch name {
	case "etcd":
		return http.ListenAndServe(strings.TrimPrefix(flags["listen-metrics-urls"], "http://"), ok)
	case "kube-apiserver":
		return http.ListenAndServeTLS(":"+flags["secure-port"], flags["tls-cert-file"], flags["tls-private-key-file"], ok)
	}
	ports := map[string]string{"kube-controller-manager": "10257", "kube-scheduler": "10259"}
	s := &http.Server{Addr: flags["bind-address"] + ":" + ports[name], Handler: ok, TLSConfig: &tls.Config{Certificates: []tls.Certificate{selfSigned()}}}
	return s.ListenAndServeTLS("", "")
}

// selfSigned is a certificate that nobody asks about, as those components make one.
func selfSigned() tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		log.Fatal(err)
	}
	t := x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, &t, &t, &key.PublicKey, key)
	if err != nil {
		log.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
