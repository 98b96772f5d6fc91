package node

import (
	"log/slog"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/disk"
	"monopod/agent/events"
	"monopod/agent/message"
	"monopod/agent/podspec"
)

// RecordStart records that the agent has started, and whether the machine was rebooted since the
// previous start; the root dir holds the previous boot id. It must be called before the agent trusts
// that the last one has ended cleanly, which removes the proof.
func RecordStart(r *events.Recorder, node string, root *checkpoint.Root, log *slog.Logger) {
	about := events.NodeRef(node)
	r.Record(about, v1.EventTypeNormal, "Starting", message.Fixed("Starting monopod."))
	now := checkpoint.ReadBoot().ID
	if now == "" {
		return
	}
	file := root.Path("boot")
	before := root.LastBoot(file)
	if before == now {
		return
	}
	if before != "" {
		r.Event(about, v1.EventTypeWarning, "Rebooted", message.Of("Node %s has been rebooted, boot id: %s", message.Name(node), message.Name(now)))
	}
	if before != "" && !checkpoint.Exists(root.Path(checkpoint.CleanEnd)) {
		_ = disk.WriteFile(root.Path(checkpoint.UncleanBoot), []byte(now+"\n"), 0o600) // the doctor alone reads it
	}
	if err := disk.WriteFile(file, []byte(now+"\n"), 0o600); err != nil {
		log.Warn("boot id not written: the next reboot is not detected", "err", err)
	}
}

// RecordResolvConf records that pods do not get all search domains of the machine, which are in
// file.
func RecordResolvConf(r *events.Recorder, n *podspec.Host, file string) {
	all := n.Resolv.Searches
	if got := podspec.LimitSearches(all); len(got) < len(all) {
		r.Event(events.NodeRef(n.Name), v1.EventTypeWarning, "CheckLimitsForResolvConf",
			message.Of("Resolv.conf file '%s' contains search line with too many or too long domains: pods get the first %d of %d",
				message.Name(file), message.Number(len(got)), message.Number(len(all))))
	}
}
