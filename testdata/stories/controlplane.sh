# A control plane from static pods, with the kubelet configuration that kubeadm writes.
. "$(dirname "$0")/story.sh"

cat >"$DIR/kubelet.yaml" <<END
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication:
  anonymous: {enabled: false}
  webhook: {cacheTTL: 0s, enabled: true}
  x509: {clientCAFile: /etc/kubernetes/pki/ca.crt}
authorization: {mode: Webhook, webhook: {cacheAuthorizedTTL: 0s, cacheUnauthorizedTTL: 0s}}
cgroupDriver: systemd
clusterDNS: [10.96.0.10]
clusterDomain: cluster.local
containerRuntimeEndpoint: ""
cpuManagerReconcilePeriod: 0s
crashLoopBackOff: {}
evictionPressureTransitionPeriod: 0s
fileCheckFrequency: 0s
healthzBindAddress: 127.0.0.1
healthzPort: 10248
httpCheckFrequency: 0s
imageMaximumGCAge: 0s
imageMinimumGCAge: 0s
logging: {flushFrequency: 0, options: {json: {infoBufferSize: "0"}, text: {infoBufferSize: "0"}}, verbosity: 0}
memorySwap: {}
nodeStatusReportFrequency: 0s
nodeStatusUpdateFrequency: 0s
rotateCertificates: true
runtimeRequestTimeout: 0s
shutdownGracePeriod: 0s
shutdownGracePeriodCriticalPods: 0s
staticPodPath: $MANIFESTS
streamingConnectionIdleTimeout: 0s
syncFrequency: 0s
volumeStatsAggPeriod: 0s
END
says "has no effect here" monopod validate --config "$DIR/kubelet.yaml"
[ "$(grep -c 'no effect' <(monopod validate --config "$DIR/kubelet.yaml" 2>&1))" = 1 ] || fail "a stock file gives more than one line: $(monopod validate --config "$DIR/kubelet.yaml" 2>&1)"

# component prints a manifest as kubeadm does: name, port, script.
component() {
	cat <<-END
		apiVersion: v1
		kind: Pod
		metadata:
		  annotations: {kubeadm.kubernetes.io/$1.advertise-client-urls: "https://127.0.0.1:$2"}
		  creationTimestamp: null
		  labels: {component: $1, tier: control-plane}
		  name: $1
		  namespace: $NS
		spec:
		  containers:
		  - command: [sh, -c, '$3']
		    image: $IMAGE
		    imagePullPolicy: IfNotPresent
		    livenessProbe: {failureThreshold: 8, httpGet: {host: 127.0.0.1, path: /livez, port: probe-port, scheme: HTTP}, initialDelaySeconds: 10, periodSeconds: 10, timeoutSeconds: 15}
		    name: $1
		    ports: [{containerPort: $2, name: probe-port, protocol: TCP}]
		    readinessProbe: {failureThreshold: 3, httpGet: {host: 127.0.0.1, path: /livez, port: probe-port, scheme: HTTP}, periodSeconds: 1, timeoutSeconds: 15}
		    resources: {requests: {cpu: 10m, memory: 20Mi}}
		    startupProbe: {failureThreshold: 24, httpGet: {host: 127.0.0.1, path: /livez, port: probe-port, scheme: HTTP}, periodSeconds: 1, timeoutSeconds: 15}
		    volumeMounts: [{mountPath: /data, name: data}]
		  hostNetwork: true
		  terminationGracePeriodSeconds: 2
		  priority: 2000001000
		  priorityClassName: system-node-critical
		  securityContext: {seccompProfile: {type: RuntimeDefault}}
		  volumes: [{hostPath: {path: $DIR/data, type: DirectoryOrCreate}, name: data}]
		status: {}
	END
}
serve='echo started >>/data/$NAME; mkdir -p /www; echo ok >/www/livez; exec httpd -f -p 127.0.0.1:$PORT -h /www'
etcd=$((20000 + RANDOM % 10000)) api=$((30001 + RANDOM % 1000)) controller=$((31002 + RANDOM % 1000))
script() { local s=${serve//\$NAME/$1}; echo "${s//\$PORT/$2}"; }

# The API server needs etcd: it crashes until that is there.
component kube-apiserver "$api" "wget -qO- http://127.0.0.1:$etcd/livez || exit 1; $(script kube-apiserver "$api")" | put kube-apiserver.yaml
component etcd "$etcd" "sleep 1; $(script etcd "$etcd")" | put etcd.yaml
component kube-controller-manager "$controller" "$(script controller "$controller")" | put kube-controller-manager.yaml
driver=cgroupfs # the file's counts where systemd is, and the runtime does not say which it uses
[ ! -d /run/systemd/system ] || driver=auto
start_agent --config "$DIR/kubelet.yaml" --cgroup-driver "$driver"
monopod wait -n "$NS" -l tier=control-plane --timeout 90s
says "etcd" monopod ps -A
[ "$(monopod ps -n "$NS" --no-headers | wc -l)" = 3 ] || fail "$(monopod ps)"
[ "$(monopod ps -n "$NS" -o name | sort | head -n 1)" = "$NS/etcd" ] || fail "$(monopod ps -o name)"

# An update as kubeadm does it: the new manifest takes the place of the old one.
sed 's/^spec:$/spec:\n  hostname: etcd-new/' "$MANIFESTS/etcd.yaml" | put etcd.yaml
until_true eval '[ "$(wc -l <"$DIR/data/etcd")" -ge 2 ]'
monopod wait -n "$NS" etcd --timeout 60s

# A restart is asked for; the words of other tools lead on.
monopod restart "$NS/kube-controller-manager"
until_true eval '[ "$(wc -l <"$DIR/data/controller")" = 2 ]'
ends_with 2 monopod get pods
grep -q "monopod ps" "$DIR/out" || fail "$(cat "$DIR/out")"
ends_with 2 monopod delete pod etcd
grep -q "etcd.yaml" "$DIR/out" || fail "delete does not name the file: $(cat "$DIR/out")"
says "etcd" monopod describe pod etcd -n "$NS"

# The node may lose the agent for a while.
before=$(cat "$DIR/data"/* | wc -l)
end_agent
start_agent --config "$DIR/kubelet.yaml" --cgroup-driver "$driver"
monopod wait -n "$NS" --all --timeout 60s
[ "$(cat "$DIR/data"/* | wc -l)" = "$before" ] || fail "an agent's restart restarted containers"

rm "$MANIFESTS"/*.yaml
monopod wait -n "$NS" --all --for gone --timeout 90s
end_agent
