# make demo    see monopod at work on a private containerd (root; Debian or Ubuntu with Go)
# make test    lint, unit, arm64, e2e: must pass, as must make test-vm SHORT=1 (root)
# make arm64   the tests of what computes, and the binary itself, on an emulated arm64 (root)
# make golden  compare pods with those of a kubelet (root; also a part of make test)
# make e2e-crio the end-to-end tests, golden among them, on the CRI-O in a folder (root; no
#              part of make test): CRIO=DIR RUNTIME=runc EVENTS=1
# make restarts see what a hundred restarts of pods leave in a runtime (root; some minutes):
#              RESTARTS=100 CRIO=DIR RUNTIME=runc EVENTS=1
# make words   record what runtimes answer to what cannot succeed (root): CRIO=DIR RUNTIME=crun
# make test-docs run the pages of docs/ and the README as a person would, each on a machine of its own
#              made of namespaces, and compare what they quote: SMOKE=1 for two of them, PAGE=edge for
#              one (root; Debian)
# make test-page look at the pages for browsers with a Chromium, and compare them with the expected
#              pictures (root; Debian)
# make bench   measure monopod beside bare CRI calls (root)
# make model   random walks through what may happen to an agent: SEED=7 STEPS=100000
# make fuzz    every fuzz target of the module, one after the other: FUZZTIME=10s
# make mutate  change the code of a package line by line and see which changes no test notices: ROOM=agent/window
# make test-handover take pods, a control plane among them, from monopod to a kubelet and back, and see that
#              no container restarts (root)
# make scale   what 100, 300 and 1,000 pods, and 10,000 restarts of one, cost on a runtime in memory
# make fleet   what ten thousand nodes that take their manifests from one web server cost it: BOXES=1000
# make deb     deb and rpm packages for amd64 and arm64 in bin/: VERSION=1.2.3
# make image   an OCI image for both in bin/, of the program alone: VERSION=1.2.3
# make vm      build and boot the Debian machine of make test-vm (root; Debian)
# make test-vm trials under systemd on that machine: TRIALS='Killed|Clock' SHORT=1, CRIO=DIR
#              RUNTIME=runc (root; Debian)
# make power-cuts cut the power of that machine while pods start, end and change, and see what
#              is left (root; Debian): CUTS=5 SEED=1 CRIO=DIR RUNTIME=runc

SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
export MONOPOD_CACHE ?= $(HOME)/.cache/monopod
ARCHES ?= amd64 arm64

CONTAINERD  := 2.4.2
KUBEADM     := 1.36.3
ETCD        := 3.6.8
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.3.0
GREMLINS    := github.com/go-gremlins/gremlins/cmd/gremlins@v0.6.0
AXE         := 4.14.1
AXE_SHA256  := e6b0ce02b84d892e2e33e403485e7f3d6c29e2be6df65daf44d89ba564139745
NFPM        := github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.43.0
# grpcnotrace: without the request log that no page shows, and its 0.3 MB.
# nethttpomithttp2: the endpoint and downloads speak HTTP/1.1, which has less to attack
# and 0.5 MB less. The runtime's gRPC has an HTTP/2 of its own.
RELEASE     := CGO_ENABLED=0 go build -trimpath -tags grpcnotrace,nethttpomithttp2 -ldflags "-s -w"
# The commit is stamped where git can tell it, and VERSION where it is given: later flags win.
STAMPED      = -buildvcs=$(STAMP)$(if $(VERSION), -ldflags "-s -w -X monopod/agent/cli.release=$(VERSION)")
STAMP       := $(shell git rev-parse HEAD >/dev/null 2>&1 && echo true || echo false)

.PHONY: build test lint unit arm64 e2e golden e2e-crio restarts crio words bench model mutate fuzz scale fleet demo deb image programs vm test-vm test-handover power-cuts moments test-docs docs-deps test-page page-deps promtool vm-deps deps root crun cc dbus emulator packages clean
.NOTPARALLEL:

build:
	$(RELEASE) $(STAMPED) -o bin/monopod .

# The end-to-end tests mostly wait for containers, so the others run beside them. What these say
# comes after the end-to-end tests, in one piece, and what has failed at the end.
test: lint cc dbus emulator deps crun
	@log=$$(mktemp -d); \
	{ $(MAKE) --no-print-directory unit arm64 && touch $$log/unit.passed; } >$$log/unit 2>&1 & \
	{ $(MAKE) --no-print-directory e2e && touch $$log/e2e.passed; } 2>&1 | tee $$log/e2e || true; \
	wait $$! || true; cat $$log/unit; code=0; \
	for part in unit e2e; do \
		[ -e $$log/$$part.passed ] && continue; \
		code=1; echo "== failed: make $$part"; grep -E $(FAILED) $$log/$$part | cut -c 1-1000 | tail -n 60 || true; \
	done; \
	rm -r $$log; exit $$code

# Lines that name a test that failed, or hung, and say why.
FAILED := '^ *--- FAIL|^ +[a-z0-9_]+_test\.go:[0-9]+: |^FAIL|^panic:|^[[:space:]]+Test.*\(.*\)$$|DATA RACE|\*\*\*'

lint:
	@echo "== gofmt"
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "not formatted:" $$unformatted; exit 1; fi
	@echo "== vet"
	@go vet ./... ./testdata/images/...
	@go vet -tags e2e ./...
	@echo "== staticcheck"
	@go run $(STATICCHECK) -tags e2e ./...
	@echo "== govulncheck"
	@$(govulncheck)

# Only findings (exit code 3) fail. Where the tool or its database cannot be
# fetched, that is said, with the reason, and the rest goes on.
define govulncheck
	dir=$(MONOPOD_CACHE)/$(GOVULNCHECK); mkdir -p $$dir; \
	if ! out=$$(GOBIN=$$dir go install $(GOVULNCHECK) 2>&1); then \
		echo "$$out" | tail -n 2; echo "SKIPPED: govulncheck was NOT run: it could not be installed"; exit 0; \
	fi; \
	code=0; out=$$($$dir/govulncheck -tags e2e ./... 2>&1) || code=$$?; \
	case $$code in \
	0) echo "no known vulnerabilities are called" ;; \
	3) echo "$$out"; exit 1 ;; \
	*) echo "$$out" | tail -n 3; echo "SKIPPED: govulncheck was NOT run to its end (code $$code): is its database reachable?" ;; \
	esac
endef

# One processor a package: with more, a timer of a testing/synctest bubble whose time has
# come in two goroutines at once breaks the race detector itself (Go issue 78156). The
# packages run side by side. The limit is for a machine with other work to do. Of the walks of
# the agent's tests some are made so, and all of them once more without the detector, as is
# what counts allocations that the detector adds to.
#
# The tests of ./agent take longer than all others together and run one after the other, so two
# halves of them run side by side.
RACE := go test -race -cpu 1 -timeout 45m
WALKS := '^(TestModel|TestEveryDiskCall|TestWhatAStartCosts)'
unit: cc dbus
	@code=0; echo "== unit tests, with the race detector and without"; \
	( $(RACE) -run '^TestA' ./agent && go test -count=1 -timeout 30m -run $(WALKS) ./agent ) & half=$$!; \
	( $(RACE) -skip '^TestA' ./agent && $(RACE) $$(go list ./... | grep -vx monopod/agent) ) || code=$$?; \
	wait $$half || code=$$?; \
	exit $$code

# What computes and reads files; what asks the kernel for more or starts its own test binary
# once more is not emulated, and is tested on the machine's own kind.
PURE := ./agent/plan ./agent/podstatus ./agent/podspec ./agent/checkpoint ./agent/rollout ./agent/hold ./agent/window ./agent/message \
	./manifests/decode ./manifests/documents ./manifests/poduid ./cgroups
arm64: emulator
	GOARCH=arm64 $(RELEASE) $(STAMPED) -o bin/monopod-arm64 .
	qemu-aarch64 bin/monopod-arm64 version
	qemu-aarch64 bin/monopod-arm64 validate testdata/manifests/web.yaml
	GOARCH=arm64 CGO_ENABLED=0 go test -exec qemu-aarch64 $(PURE)

e2e: deps crun
	go test -tags e2e -count=1 -v -timeout 60m ./agent/e2e/... ./cgroups

golden: deps
	go test -tags e2e -count=1 -v -run '^TestGolden$$' ./agent/e2e

# CRIO is a folder with the programs crio and pinns of a CRI-O; all else that it needs is
# installed. RUNTIME is runc or crun; EVENTS=1 has CRI-O stream container events, which it
# does not by default. RUN picks tests.
e2e-crio: export MONOPOD_CRIO = $(abspath $(CRIO))
e2e-crio: export MONOPOD_CRIO_RUNTIME = $(or $(RUNTIME),runc)
e2e-crio: export MONOPOD_CRIO_EVENTS = $(or $(EVENTS),0)
e2e-crio: crio packages
	go test -tags e2e -count=1 -v -timeout 90m -run '$(RUN)' ./agent/e2e

# Pods restart RESTARTS times and are replaced, and the runtime and the agent restart, too: on the
# CRI-O in the folder CRIO, or on both containerds.
restarts: export MONOPOD_CRIO = $(if $(CRIO),$(abspath $(CRIO)))
restarts: export MONOPOD_CRIO_RUNTIME = $(or $(RUNTIME),runc)
restarts: export MONOPOD_CRIO_EVENTS = $(or $(EVENTS),0)
restarts: export MONOPOD_E2E_RESTARTS = $(or $(RESTARTS),100)
restarts: $(if $(CRIO),crio packages,deps)
	go test -tags e2e -count=1 -v -timeout 60m -run '^TestRestarts$$' ./agent/e2e

crio: root
	@[ -n "$(CRIO)" ] || { echo "say where CRI-O is: make e2e-crio CRIO=DIR, where DIR has the programs crio and pinns"; exit 1; }
	@for program in crio pinns; do [ -x "$(CRIO)/$$program" ] || { echo "CRIO=$(CRIO) has no program $$program"; exit 1; }; done
	@need=(); \
	command -v conmon >/dev/null || need+=(conmon); \
	command -v skopeo >/dev/null || need+=(skopeo); \
	command -v $(or $(RUNTIME),runc) >/dev/null || need+=($(or $(RUNTIME),runc)); \
	$(call install,$${need[*]})
	@echo "CRI-O: $$("$(CRIO)/crio" --version | head -n 1), with $(or $(RUNTIME),runc), container events $(if $(filter 1,$(EVENTS)),on,off)"

# The answers of both containerds, or of the CRI-O in the folder CRIO, with the OCI runtime RUNTIME
# that comes first in PATH; VERSIONS="1.7.35" is another containerd of the cache.
words: export MONOPOD_CRIO = $(if $(CRIO),$(abspath $(CRIO)))
words: export MONOPOD_CRIO_RUNTIME = $(or $(RUNTIME),runc)
words: $(if $(CRIO),crio packages,deps)
	go run ./agent/e2e/words -oci $(MONOPOD_CRIO_RUNTIME) $(VERSIONS)

# FLAGS="-pods 20,100 -singles 15 -crashes 15 -rounds 3 -idle 30s -json FILE -last FILE -bare", or
# -many 1000: the agent alone with so many pods.
bench: deps
	go build -o bin/bench ./agent/e2e/bench
	bin/bench $(FLAGS)

# SEED alone walks one seed again; STEPS are those of all walks together, from SEED on. Only here are
# the walks through files and a URL made.
model: export STEPS ?= $(if $(SEED),40,4000)
model:
	MONOPOD_MODEL_SEED="$(SEED)" MONOPOD_MODEL_STEPS="$(STEPS)" go test -count=1 -timeout 0 -run '^TestModel' ./agent

# A mutant that ends no loop is ended after a while: one at a time, so that none is for want of
# a processor.
ROOM ?= agent/window
mutate:
	go run $(GREMLINS) unleash --workers 1 --timeout-coefficient 60 ./$(ROOM)

# The order of a map changes what is covered from run to run: without a bound nearly all time goes into making what seems new smaller.
FUZZTIME ?= 10s
fuzz:
	targets=$$(go test -list '^Fuzz' ./... | awk '/^Fuzz/ {names[n++] = $$1} /^ok/ {for (k = 0; k < n; k++) print $$2, names[k]; n = 0}'); \
	[ -n "$$targets" ] || { echo "there is nothing to fuzz"; exit 1; }; \
	while read -r package target; do \
		echo "== $$package $$target"; go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 20x "$$package"; \
	done <<< "$$targets"

# SCALE="100 1000" for other numbers of pods.
scale:
	SCALE="$${SCALE:-100 300 1000}" MONOPOD_RESTARTS=10000 go test -count=1 -timeout 30m -v \
		-run '^(TestScale|TestRestartsWithoutEndTakeNoMoreAndMore)$$' ./agent

# How even the requests are is measured on a clock that runs faster, what they cost on the real one.
fleet: export MONOPOD_FLEET = $(or $(BOXES),10000)
fleet:
	go test -count=1 -v -run '^TestNodes' ./manifests/fetch
	go build -o bin/fleet ./agent/e2e/fleet
	bin/fleet -boxes $(MONOPOD_FLEET)

# DEMO_ONCE=1 ends by itself after the pods came up. The recipe is one exec, so that
# Ctrl-C is the demo's to answer.
demo: packages build
	@go build -o bin/demo ./agent/e2e/demo
	@trap : INT; bin/demo -monopod bin/monopod

# The same sources give the same bytes: all dates are that of the last commit, as is the
# version unless it is given.
deb image: export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || stat -c %Y go.mod)
deb image: export VERSION ?= 0.0~git$(shell date -u -d @$(SOURCE_DATE_EPOCH) +%Y%m%d%H%M%S).$(shell git rev-parse --short=12 HEAD 2>/dev/null || echo none)
deb image: export NFPM := $(NFPM)
deb image: export ARCHES := $(ARCHES)
deb: build programs
	@for arch in $(ARCHES); do packaging/pack $$arch bin/monopod-$$arch; done

image: programs
	@packaging/image

programs:
	@for arch in $(ARCHES); do GOARCH=$$arch $(RELEASE) $(STAMPED) -o bin/monopod-$$arch .; done

# The disk is made once, and again when its recipe changes.
bin/vm/disk.img: testdata/vm/disk $(shell find testdata/vm/guest -type f)
	@mkdir -p bin/vm && testdata/vm/disk bin/vm

vm-deps: deps
	@need=(); \
	command -v qemu-system-x86_64 >/dev/null || need+=(qemu-system-x86); \
	command -v mmdebstrap >/dev/null || need+=(mmdebstrap); \
	command -v mke2fs >/dev/null || need+=(e2fsprogs); \
	command -v lintian >/dev/null || need+=(lintian); \
	command -v gzip >/dev/null || need+=(gzip); \
	$(call install,$${need[*]})

vm: vm-deps $(if $(CRIO),crio) bin/vm/disk.img
	$(VM) -trials '^$$'

# TRIALS is a regular expression for their names; SHORT=1 leaves out those that take long. CRIO is a
# folder with the programs crio and pinns: with it the machine has that CRI-O instead of containerd.
test-vm: vm-deps $(if $(CRIO),crio) bin/vm/disk.img
	$(VM) $(if $(SHORT),-short) -trials '$(TRIALS)'

# The pages of the docs. MONOPOD_UPDATE=1 writes into them what the screens show: read the diff.
test-docs: docs-deps
	@promtool check rules packaging/alerts.yaml
	@promtool test rules packaging/alerts-test.yaml
	MONOPOD_DOCS=$(if $(SMOKE),smoke,all) go test -tags e2e -count=1 -v -timeout 15m -run '^TestPages$$/$(PAGE)' ./agent/e2e/docs

docs-deps: packages promtool $(if $(SMOKE),,$(MONOPOD_CACHE)/kubeadm-$(KUBEADM)/kubeadm)
	@need=(); \
	command -v openssl >/dev/null || need+=(openssl); \
	command -v curl >/dev/null || need+=(curl); \
	command -v iptables >/dev/null || need+=(iptables); \
	command -v unshare >/dev/null || need+=(util-linux); \
	$(call install,$${need[*]})
	@go run $(NFPM) --version >/dev/null # the machines have no network to fetch it from

# The package has a service, which policy-rc.d keeps from being started.
promtool: policy := /usr/sbin/policy-rc.d
promtool: root
	@if ! command -v promtool >/dev/null; then \
		[ -e $(policy) ] || { trap 'rm $(policy)' EXIT; printf '#!/bin/sh\nexit 101\n' >$(policy); chmod 755 $(policy); }; \
		$(call install,prometheus); fi

# The pages for browsers. MONOPOD_UPDATE=1 writes the expected pictures: look at them.
test-page: export MONOPOD_AXE = $(MONOPOD_CACHE)/axe-core-$(AXE)/axe.min.js
test-page: page-deps $(MONOPOD_CACHE)/axe-core-$(AXE)/axe.min.js
	go test -tags e2e -count=1 -v -timeout 5m ./agent/e2e/page

# The pictures are in the fonts of fonts-liberation2, whatever else a machine has.
page-deps: packages
	@need=(); \
	command -v chromium >/dev/null || need+=(chromium); \
	[ -d /usr/share/fonts/truetype/liberation2 ] || need+=(fonts-liberation2); \
	$(call install,$${need[*]})

# Pods between monopod and a kubelet, without an API server, and with one that is itself such a pod.
KUBERNETES := $(foreach p,kubeadm kubelet kube-apiserver kube-controller-manager kube-scheduler,$(MONOPOD_CACHE)/$(p)-$(KUBEADM)/$(p))
test-handover: export MONOPOD_KUBELET = $(filter %/kubelet,$(KUBERNETES))
test-handover: export MONOPOD_CONTROL_PLANE = $(filter-out %/kubelet,$(KUBERNETES)) $(MONOPOD_CACHE)/etcd-$(ETCD)/etcd
test-handover: deps $(KUBERNETES) $(MONOPOD_CACHE)/etcd-$(ETCD)/etcd
	go test -tags e2e -count=1 -v -timeout 60m -run '^TestHandover$$' ./agent/e2e

# Kills of the agent at random moments, on both versions of containerd.
moments: deps
	MONOPOD_E2E_MOMENTS=$(or $(MOMENTS),200) go test -tags e2e -count=1 -v -timeout 120m -run "^TestRandomMoments$$" ./agent/e2e

# A line for each cut, which takes the next SEED, in any moment of the life or in those named:
# DURING=reboots. Exit code 2 if one cost anything.
power-cuts: vm-deps $(if $(CRIO),crio) bin/vm/disk.img
	$(VM) -cuts $(or $(CUTS),5) -seed $(or $(SEED),1) -during '$(DURING)'

VM = go run ./agent/e2e/vm -disk bin/vm $(if $(CRIO),-crio '$(CRIO)' -oci $(or $(RUNTIME),runc))

deps: packages $(MONOPOD_CACHE)/containerd-$(CONTAINERD)/containerd

root:
	@[ "$$(id -u)" = 0 ] || { echo "run this as root: it starts a private containerd"; exit 1; }

# Packages that are missing, and nothing else. A containerd that the package
# starts as a service is left alone: ours has its own root, state and socket.
packages: root
	@need=(); \
	command -v containerd >/dev/null || need+=(containerd); \
	command -v runc >/dev/null || need+=(runc); \
	command -v ip >/dev/null || need+=(iproute2); \
	command -v strace >/dev/null || need+=(strace); \
	[ -x /usr/lib/cni/bridge ] || [ -x /opt/cni/bin/bridge ] || need+=(containernetworking-plugins); \
	dpkg-query -W -f '$${Status}' busybox-static 2>/dev/null | grep -q 'ok installed' || need+=(busybox-static); \
	$(call install,$${need[*]})

# The OCI runtime that the end-to-end tests have beside runc.
crun: root
	@command -v crun >/dev/null || { $(call install,crun); }

# go test -race needs a C compiler.
cc:
	@need=(); \
	command -v cc >/dev/null || command -v gcc >/dev/null || need+=(gcc libc6-dev); \
	if [ $${#need[@]} -gt 0 ] && [ "$$(id -u)" != 0 ]; then echo "no C compiler for go test -race: install gcc and libc6-dev"; exit 1; fi; \
	$(call install,$${need[*]})

emulator:
	@need=(); \
	command -v qemu-aarch64 >/dev/null || need+=(qemu-user); \
	if [ $${#need[@]} -gt 0 ] && [ "$$(id -u)" != 0 ]; then echo "no emulator for arm64: install qemu-user"; exit 1; fi; \
	$(call install,$${need[*]})

# The tests of agent/shutdown have a bus of their own.
dbus:
	@if ! command -v dbus-daemon >/dev/null; then \
		[ "$$(id -u)" = 0 ] || { echo "no dbus-daemon for the tests of agent/shutdown: install dbus-daemon"; exit 1; }; \
		$(call install,dbus-daemon); fi

install = if [ -n "$(1)" ]; then echo "installing $(1)"; apt-get update -q; \
	DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $(1); fi

# The second containerd of the tests: it streams container events, which the
# distribution's may not. Built once, outside of the checkout.
$(MONOPOD_CACHE)/containerd-$(CONTAINERD)/containerd:
	@echo "building containerd $(CONTAINERD), once (a minute or two)"
	@mkdir -p $(MONOPOD_CACHE) && tmp=$$(mktemp -d $(MONOPOD_CACHE)/build-XXXXXX) && trap 'rm -rf "$$tmp"' EXIT && \
	CGO_ENABLED=0 GOBIN=$$tmp go install -trimpath -ldflags "-s -w" -tags "no_btrfs no_zfs no_devmapper" \
		github.com/containerd/containerd/v2/cmd/containerd@v$(CONTAINERD) \
		github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2@v$(CONTAINERD) && \
	chmod 755 $$tmp && rm -rf $(@D) && mv $$tmp $(@D)

# What looks for what keeps people from using a page, from the npm registry.
$(MONOPOD_CACHE)/axe-core-$(AXE)/axe.min.js:
	@command -v npm >/dev/null || { $(call install,npm); }
	@echo "fetching axe-core $(AXE), once"
	@mkdir -p $(MONOPOD_CACHE) && tmp=$$(mktemp -d $(MONOPOD_CACHE)/build-XXXXXX) && trap 'rm -rf "$$tmp"' EXIT && cd $$tmp && \
	npm pack --silent axe-core@$(AXE) >/dev/null && \
	echo "$(AXE_SHA256)  axe-core-$(AXE).tgz" | sha256sum --quiet -c && \
	tar xzf axe-core-$(AXE).tgz package/axe.min.js && \
	mkdir -p $(@D) && mv package/axe.min.js $@

# The kubeadm of docs/control-plane.md, and what pods are handed over to. The modules that they have
# beside them are published under a version of their own.
$(KUBERNETES):
	@echo "building $(@F) $(KUBEADM), once (some minutes)"
	@mkdir -p $(MONOPOD_CACHE) && tmp=$$(mktemp -d $(MONOPOD_CACHE)/build-XXXXXX) && trap 'rm -rf "$$tmp"' EXIT && cd $$tmp && \
	go mod init kubernetes 2>/dev/null && go mod edit -require=k8s.io/kubernetes@v$(KUBEADM) && \
	for module in $$(sed -n 's|^\t\(k8s.io/[a-z-]*\) => .*|\1|p' $$(go mod download -json k8s.io/kubernetes@v$(KUBEADM) | sed -n 's|.*"GoMod": "\(.*\)",|\1|p')); do \
		go mod edit -replace=$$module=$$module@v0$(patsubst 1%,%,$(KUBEADM)); done && \
	CGO_ENABLED=0 go build -mod=mod -trimpath -ldflags "-s -w $(foreach v,gitVersion=v$(KUBEADM) gitMajor=1 gitMinor=$(word 2,$(subst ., ,$(KUBEADM))),-X k8s.io/component-base/version.$(v))" \
		-o $$tmp/$(@F) k8s.io/kubernetes/cmd/$(@F) && \
	mkdir -p $(@D) && mv $$tmp/$(@F) $@

# The etcd whose image `kubeadm config images list` names.
$(MONOPOD_CACHE)/etcd-$(ETCD)/etcd:
	@echo "building etcd $(ETCD), once (a minute or two)"
	@mkdir -p $(MONOPOD_CACHE) && tmp=$$(mktemp -d $(MONOPOD_CACHE)/build-XXXXXX) && trap 'rm -rf "$$tmp"' EXIT && cd $$tmp && \
	go mod init etcd 2>/dev/null && go mod edit -require=go.etcd.io/etcd/server/v3@v$(ETCD) && \
	CGO_ENABLED=0 go build -mod=mod -trimpath -ldflags "-s -w" -o $$tmp/etcd go.etcd.io/etcd/server/v3 && \
	mkdir -p $(@D) && mv $$tmp/etcd $@

clean:
	rm -rf bin
