package objects

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"monopod/manifests"
	"monopod/manifests/documents"
)

// Containers that run carry digests of earlier versions: another one would restart them.
func TestADigestIsThatOfTheTextThatFmtMakes(t *testing.T) {
	key := manifests.ObjectKey{Kind: documents.ConfigMap, Namespace: "default", Name: "m"}
	odd := "a\"\\\x00\n\u00e4\u2028\U0001F600" + string([]byte{0x80, 0xff, 0xc3, 0xe2, 0x82})
	for name, value := range map[string]string{"nothing": "", "short": "x", "odd": odd, "long and odd": strings.Repeat("z"+odd, 3000),
		"never a rune": strings.Repeat("\x80", 20_000), "long runes": strings.Repeat("\U0001F600", 5000), "and one before": "x" + strings.Repeat("\U0001F600", 5000)} {
		_, all := read(t, object("ConfigMap", "m", ""))
		all[0].ConfigMap.Data = map[string]string{"k": value, "b": "second", "\"": "quote"}
		for _, keys := range [][]string{nil, {"k"}, {"k", "b", "k"}, {"none"}} {
			data := map[string]string{}
			for k, v := range all[0].ConfigMap.Data {
				if len(keys) == 0 || slices.Contains(keys, k) {
					data[k] = v
				}
			}
			used := fmt.Sprintf("%q;", data)
			want := sha256.Sum256([]byte("u\x00" + used + used))
			r := ref{ObjectKey: key, keys: keys}
			if got := NewSet(all).digest("u", key, []ref{r, r}); got != want {
				t.Errorf("%s, keys %v: %s", name, keys, hex.EncodeToString(got[:]))
			}
		}
	}
	want := sha256.Sum256([]byte("u\x00none;"))
	if got := NewSet(nil).digest("u", key, []ref{{ObjectKey: key}}); got != want {
		t.Error("of an object that is not there")
	}
}

// A worker asks in each pass, and a manifest may refer to one object many times.
func TestADigestTakesLittleAndIsMadeOnce(t *testing.T) {
	var refs []string
	for k := range 50 {
		refs = append(refs, fmt.Sprintf("{configMapRef: {name: m}, prefix: P%d}", k))
	}
	value := strings.Repeat("a", 1<<20-1000)
	pods, all := read(t, pod("envFrom: ["+strings.Join(refs, ", ")+"]"), object("ConfigMap", "m", "k: "+value), object("ConfigMap", "other", ""))
	pods[0].UID = "u"
	var store Store
	store.Replace(all, nil)
	var before, first runtime.MemStats
	runtime.ReadMemStats(&before)
	was := store.Now().Env(pods[0])["c"]
	runtime.ReadMemStats(&first)
	if spent := first.TotalAlloc - before.TotalAlloc; spent > 8<<20 {
		t.Errorf("%d MB are allocated", spent>>20)
	}
	_, others := read(t, object("ConfigMap", "other", "k: changed"))
	store.Replace([]*manifests.Object{all[0], others[0]}, nil)
	for u := range store.Now().sums.all {
		store.Now().sums.all[u] = sum{1}
	}
	if now := store.Now().Env(pods[0])["c"]; now != "configmap/m=0100000000000000" || len(store.Now().sums.all) != 1 {
		t.Errorf("%q, then computed again: %q; %d kept", was, now, len(store.Now().sums.all))
	}
	_, changed := read(t, object("ConfigMap", "m", "k: new"))
	store.Replace(changed, nil)
	if now := store.Now().Env(pods[0])["c"]; Changed(was, now) != `ConfigMap "m"` || len(store.Now().sums.all) != 1 {
		t.Errorf("%q, then %q; %d kept", was, now, len(store.Now().sums.all))
	}
}
