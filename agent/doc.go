// Package agent wires the parts of monopod together and runs the sync loop.
//
// The house. Imports run down only: a package imports those below it. The test in
// house_test.go has the exact table.
//
//	main.go                  signals, the only os.Exit
//	agent/                   the spine: agent.go (wiring), sync.go (the loop), apply.go, report.go
//	  cli/                     commands, one file each
//	    command/                 flags in any order, exit codes, help, completion, manual pages;
//	                             library_test.go has the reasons against a library alone
//	    check/                   checks manifests as the agent would
//	    cp/                      copies files by the tar of a container
//	    forward/                 forwards ports of this machine to a pod
//	    diff/                    what manifests would change, by the agent or its last state
//	    owner/                   stop, start, hold, release, restart, rollback, forget
//	    support/                 an archive for a person who helps, without secrets
//	    logs/                    containers' logs in the order of time
//	    wait/                    waits until files and pods have a result
//	    client/                  the socket, the last known state, names
//	    terminal/                keys, sizes, signals
//	    clitest/                 for tests: an agent for requests, pages to compare with
//	  print/                   tables, words, colours
//	  once/                    one run of pods to their end
//	  doctor/                  what a machine lacks that the agent needs
//	  handover/                takes pods from monopod to a kubelet, or back, without a restart
//	  reload/                  applies settings that change while the agent runs
//	  settings/                the settings of each package, as values of the Config's
//	  worker/                  one goroutine per pod name: observe, plan, apply
//	  inplace/                 updates a running pod to its next version
//	  gc/                      removes what no longer has an owner
//	  overview/                the present state, for requests and scrapes
//	  outlook/                 pure: what manifests would change of the present pods
//	  rollout/                 pure: all that is known of one pod name -> which version of it runs,
//	                           and which former one it is rolled back to
//	  podstatus/               pure: Facts -> v1.PodStatus
//	  shutdown/                stops the pods in order before the machine shuts down
//	  prepare/                 makes a version of a pod ready to run beside the one that runs
//	  podimages/               the images of a pod's containers, in the background
//	  podevents/               the events about one pod name
//	  plan/                    pure: Facts -> actions, each with a cause and a reason
//	    plantest/                for tests: builds Facts
//	  admission/               which pods this node has room for
//	  instance/                what a pod instance has on disk and as cgroup
//	  podhosts/                lists all pods in the /etc/hosts of each
//	  podresolv/               keeps the resolv.conf of pods as the machine's
//	  node/                    what the machine is, has and lacks; the Node report
//	  pinning/                 keeps containers on the CPUs that are theirs
//	  pleg/                    relist, event stream, cache: what the runtime has
//	  hold/                    the owner's requests: stopped pods, held versions
//	  checkpoint/              what survives on disk
//	  update/                  pure: how a running pod becomes the next version of itself
//	  cpus/                    pure: which containers get CPUs of their own
//	  devices/                 gives containers the devices of the machine that they request
//	  podspec/                 pure: v1.Pod -> CRI configs and cgroup values
//	  objects/                 the ConfigMaps and Secrets, and which pods refer to them
//	  probe/ hook/             checks containers; runs their hooks at start and stop
//	  volume/ image/           volumes; pulls, credentials and collection of images
//	  archives/                has the runtime import the image archives of folders
//	  managed/                 starts and supervises a containerd of monopod's own
//	  oom/                     kills for want of memory, read from the kernel's log
//	  logrotate/ podlog/ stream/ rotation of logs; reading them; the streams of containers
//	  status/ events/          what is reported; what happened
//	  metrics/ stats/          what is counted; what is used
//	  outcome/                 the results of manifest files and of the pods in them
//	  page/                    what runs here, for browsers
//	  server/ notify/          the endpoint; messages to the service manager
//	  podresources/ socket/    what containers have for themselves, for a kubelet's clients; unix sockets
//	  disk/                    files that others, or a power cut, may have tampered with
//	  message/ clip/           texts with a public part; limits of their length
//	  runtimewords/ saidonce/  why a runtime starts no container, from its errors; errors logged once
//	  panics/ slots/           a panic becomes the error of one piece of work; bounds of calls at a time
//	  wake/ backoff/           how one goroutine wakes another; waits between tries of what fails
//	  choice/                  values of which a person chooses one
//	  window/ cnicache/        when updates may happen; removes damaged cache files of the CNI library
//	  config/                  the table of settings; only agent and above see it
//	  e2e/                     tests on real containerds
//	    rig/ golden/             the containerds; pods beside those of a kubelet
//	    bench/ demo/             measures; shows it at work
//	    words/                   records what runtimes answer to what cannot succeed
//	    fleet/                   measures ten thousand nodes that ask one web server
//	    vm/ writelog/            trials under systemd; power cuts at random writes
//	    page/                    looks at the pages with a browser
//	    docs/                    runs what the docs have a person type, and compares what they quote
//	manifests/               desired state: files and answers of a URL -> Snapshot
//	  fetch/ patient/          requests the URL; reads file systems that may never answer
//	  signature/               proves who signed what a URL gives
//	  layers/                  several folders, of which later ones win -> one Snapshot
//	  decode/ shell/           YAML with line numbers; words quoted for a shell
//	  annotations/             what annotations of pods mean to monopod
//	  documents/               pods and objects of bytes
//	    documenttest/            for tests: writes manifests
//	  workload/                the one pod of a Deployment and its like
//	  imagename/ devicename/   parse the names of images; read those of devices
//	  defaults/ validate/      what the API server fills in; what it refuses
//	  poduid/ podfiles/        the uids and hashes of pods; the size of the files made for a pod
//	cri/                     typed client of the CRI; knows no pods
//	  critest/                 a runtime in memory, for tests
//	cgroups/                 cgroups of pods, by files or by systemd; knows names and numbers
//	  cgrouptest/              for tests
//	testdata/                manifests, recordings and images of tests and the demo; vm/: the recipe of the machine
//	packaging/               the systemd unit and the Debian package; docs/systemd.md describes both
//
// One pod's way:
//
//	a manifest changes
//	  -> manifests.Source      reads, decodes, validates, settles removals
//	  -> Snapshot              complete, in a slot of one: the latest wins
//	  -> sync loop (sync.go)   has one record for each pod name (records.go). An event marks names
//	                           dirty (agenda.go): those that it affects. They are decided on one
//	                           after the other, until none is dirty, in three steps (apply.go):
//	       observe               its state in the table, in the owner's requests and in the runtime
//	       rollout.Decide        pure: which version runs, which is prepared beside it, what it
//	                             waits for, how its trial continues, and when to decide again
//	       carryOut              takes or frees its room, sends its worker what is to run
//	  -> prepare.Task          makes the next version ready while the former one runs. Its State
//	                           goes back to the loop, which requests a last check before it lets
//	                           that version run
//	  -> worker.Update         what is to run, in a slot of one
//	  -> worker                pass after pass, until there is nothing to do:
//	       observe               pleg.Observer: sandboxes and containers of this pod
//	       plan                  plan.Make: steps of actions, and when to look again
//	       apply                 cri, cgroups, volume, image, checkpoint
//	  -> podstatus             the status that follows from the same Facts
//	  -> status.Store          JSON files by rename; a copy for HTTP and commands
//	  -> worker.State          back to the loop: cleared, ended, ready, gone, and its health
//
// Decide applies rule after rule, each in a file of rollout. A pod that its owner stopped stays
// stopped. The start order makes pods wait for their turn (startorder.go). The gate delays changes
// while the owner holds the pod or the node, the update window is closed, or the workload has
// locked its pod (gate.go). A version waits until all that it needs is there, and for its room. The
// trial selects the offered version (trial.go, watch.go): the one of the manifest, or the former
// one after its successor failed. That choice is made when a snapshot gives the version, and again
// for a name whose trial has a result: a decision only reports that result.
//
// A switch from one version to the next is a transaction: what only the next one needs is made
// beside the former one, its checkpoint last (checkpoint.NextFile); then the former's checkpoint is
// marked as being removed, which commits. If an agent is killed before that, the next agent runs
// the former version; if after that, the next version (checkpoint.Accepted). While the disk does
// not take one of these writes, the worker runs the former version (worker/commit.go).
//
// ConfigMaps and Secrets come with the Snapshot, too. The sync loop puts them into the
// objects.Store, from which workers read, and wakes those whose pods refer to one that changed:
// what failed is retried at once, and volumes are updated. It retains those that versions of pods
// need though no manifest gives them any more (retention.go).
//
// Events of the runtime, relists, ticks and probe results only wake a worker, which then observes
// its pod itself: a lost event costs time, never truth.
//
// The sync loop does no I/O. The cost of an event depends on the pods that it concerns: waiting
// pods are decided on again once something was freed, and the pods of a start order when one that
// they start after has changed. A worker owns its pod: two instances of one pod never overlap.
// Settings reach the packages as values: settings/settings.go copies them from config.Config, and
// reload/reload.go applies those that take effect while the agent runs.
//
// The files: agent.go and wiring.go (the parts), sync.go (the loop: one handler an event),
// records.go (what is known by pod name), agenda.go (which names are to be decided on),
// startorder.go (which pods start after which), apply.go (makes decisions and carries them out),
// report.go (reports of the manifests, and of pods without a worker), trials.go (the versions on
// trial), filings.go (their records on disk), history.go (the versions that were ready, and the
// request for one of them), following.go (which images the tags mean that pods follow), retention.go
// (which objects stay), locks.go (checks the lock files of workloads), diskwrite.go (writes that a
// disk may not answer), contain.go (a panic over one pod), once.go (an agent for one run), forget.go
// (the request to remove a pod), outlook.go (the request for what manifests would change), pins.go
// (CPUs and devices of containers), metrics.go, usage.go, nodeevents.go,
// manifesttext.go (what people see of the text of a manifest).
package agent
