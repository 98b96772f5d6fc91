package cli

import (
	"strings"

	"github.com/urfave/cli/v2"
)

// examples has the examples of each command.
var examples = map[string][]string{
	"run": {
		"monopod run --manifests /etc/monopod/manifests",
		"monopod run --config /etc/monopod/config.yaml --log-level debug",
	},
	"once": {
		"monopod once job.yaml --timeout 10m",
		"monopod once test.yaml --set app=app:pr-17 --report junit=junit.xml",
	},
	"validate": {
		"monopod validate /etc/monopod/manifests",
		"helm template web ./chart | monopod validate -",
	},
	"diff": {
		"monopod diff web.yaml",
		"monopod diff --prune manifests/ -o json",
	},
	"init": {
		"monopod init",
		"monopod init ./monopod",
	},
	"sign": {
		"monopod sign --key fleet.pem --new-key",
		"monopod sign --key fleet.pem pods.yaml",
	},
	"config": {
		"monopod config --defaults",
		"monopod config --defaults > /etc/monopod/config.yaml",
	},
	"ps": {
		"monopod ps -o wide",
		"monopod ps --files -n kube-system",
	},
	"describe": {
		"monopod describe web",
		"monopod describe node",
	},
	"events": {
		"monopod events --for web --since 1h --types Warning",
		"monopod events -w",
	},
	"top": {
		"monopod top pods -c --sort-by memory",
		"monopod top node",
	},
	"logs": {
		"monopod logs -f web",
		"monopod logs web app --previous --tail 50",
	},
	"exec": {
		"monopod exec -it web -- sh",
		"monopod exec web/app -- cat /etc/resolv.conf",
	},
	"attach": {
		"monopod attach web",
		"monopod attach -it web -c shell",
	},
	"port-forward": {
		"monopod port-forward web 8080:80",
		"monopod port-forward web :http 9090 --address 192.0.2.7 --follow",
	},
	"cp": {
		"monopod cp web:/etc/nginx/nginx.conf nginx.conf",
		"monopod cp ./pages web:/usr/share/nginx/html -c nginx",
	},
	"wait": {
		"cp web.yaml /etc/monopod/manifests/ && monopod wait web.yaml --for updated",
		"monopod wait --all --timeout 90s",
	},
	"restart": {
		"monopod restart web/app",
		"monopod restart web --timeout 2m",
	},
	"history": {
		"monopod history web",
		"monopod history web -o json",
	},
	"rollback": {
		"monopod rollback web",
		`monopod rollback web --to 3f2a --reason "pages are blank"`,
	},
	"stop": {
		"monopod stop web",
		"monopod stop -l tier=front --no-wait",
	},
	"start": {
		"monopod start web",
		"monopod start --all --timeout 5m",
	},
	"hold": {
		`monopod hold --for 2h --reason "disk is exchanged"`,
		"monopod hold web db",
	},
	"release": {
		"monopod release",
		"monopod release web db",
	},
	"forget": {
		"monopod forget web",
		"monopod forget configmap/web-settings",
	},
	"objects": {
		"monopod objects -n kube-system",
		"monopod objects -o json",
	},
	"images": {
		"monopod images -o wide",
		"monopod images load app.tar.gz",
	},
	"volume": {
		"monopod volume ls",
		"monopod volume inspect default/data",
	},
	"export": {
		"monopod export --config /etc/monopod/config.yaml handover",
		"monopod export --inline --for-kubelet /var/lib/kubelet handover",
	},
	"adopt": {
		"monopod adopt --manifests /etc/kubernetes/manifests --root /var/lib/kubelet",
		"monopod adopt --config /etc/monopod/config.yaml --yes",
	},
	"doctor": {
		"monopod doctor",
		"monopod doctor --config /etc/monopod/config.yaml",
	},
	"support": {
		"monopod support",
		"monopod support --config /etc/monopod/config.yaml box7.tar.gz",
	},
	"version": {
		"monopod version",
		"monopod version -o json",
	},
	"completion": {
		"source <(monopod completion bash)",
		"monopod completion fish > ~/.config/fish/completions/monopod.fish",
	},
	"man": {
		"monopod man | man -l -",
		"monopod man settings | man -l -",
		"monopod man > /usr/local/share/man/man1/monopod.1",
	},
	"help": {
		"monopod help",
		"monopod help ps",
	},
}

// withExamples adds its examples to the description of each command.
func withExamples(commands []*cli.Command) []*cli.Command {
	for _, k := range commands {
		if lines := examples[k.Name]; lines != nil {
			k.Description += "\n\nExamples:\n\n    " + strings.Join(lines, "\n    ")
		}
	}
	return commands
}
