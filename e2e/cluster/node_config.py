"""What the daemons of one node read: kubelet, kube-proxy, containerd, CNI."""

import json

from e2e.cluster import cgroups
from e2e.cluster.build import PAUSE_IMAGE
from e2e.cluster.network import node_plan
from e2e.cluster.pki import CA, PKI
from e2e.cluster.state import Settings, State, write

LEASE_SECONDS = 8
GPU_PRODUCT = "NVIDIA-H100-80GB-HBM3"
EVICTION_SIGNALS = (
    "memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available", "imagefs.inodesFree",
)  # fmt: skip


def write_config(state: State, settings: Settings, name: str) -> None:
    """Certificates and configuration of node `name`."""
    plan, pki, node = node_plan(state, settings.net, name), PKI(state), state.node(name)
    pki.issue(name, f"system:node:{name}", "system:nodes", (name, plan.ip))
    pki.kubeconfig(node / "kubelet.kubeconfig", settings.server, name)
    write(node / "resolv.conf", "")
    write(node / "containerd.toml", _containerd(state, name))
    write(node / "cni" / "10-pods.conflist", _cni(plan.pods))
    write(node / "kubelet.yaml", _kubelet(state, settings, name))
    write(node / "kube-proxy.yaml", _kube_proxy(state, settings, name))


def labels(settings: Settings) -> str:
    """Labels that a node registers itself with."""
    return f"nvidia.com/gpu.product={GPU_PRODUCT}" if settings.gpus_per_node else ""


def _kubelet(state: State, settings: Settings, name: str) -> dict[str, object]:
    pki, node = PKI(state), state.node(name)
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": node_plan(state, settings.net, name).ip,
        "readOnlyPort": 0,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(pki.cert(CA))},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(pki.cert(name)),
        "tlsPrivateKeyFile": str(pki.key(name)),
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{cgroups.root(state)}/{name}",
        "oomScoreAdj": 0,  # a lower one needs CAP_SYS_RESOURCE
        "makeIPTablesUtilChains": False,
        "failSwapOn": False,
        "clusterDNS": [f"{settings.net}.0.1"],
        "clusterDomain": "cluster.local",
        "resolvConf": str(node / "resolv.conf"),
        "nodeLeaseDurationSeconds": LEASE_SECONDS,
        "nodeStatusReportFrequency": "10s",
        "serializeImagePulls": False,
        # A full disk must neither evict pods nor collect images that no registry can give back.
        "evictionHard": dict.fromkeys(EVICTION_SIGNALS, "0%"),
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
    }


def _kube_proxy(state: State, settings: Settings, name: str) -> dict[str, object]:
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "clusterCIDR": f"{settings.net}.64.0/18",
        "hostnameOverride": name,
        "oomScoreAdj": 0,
        "clientConnection": {"kubeconfig": str(state.conf / "kube-proxy.kubeconfig")},
        # nf_conntrack_max cannot be set in a network namespace.
        "conntrack": {"maxPerCore": 0, "min": 0},
    }


def _containerd(state: State, name: str) -> str:
    return f"""version = 2
oom_score = 0  # a lower one needs CAP_SYS_RESOURCE

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE_IMAGE}"
  restrict_oom_score_adj = true  # likewise: runc may not go below its own score

[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "/usr/lib/cni"
  conf_dir = "{state.node(name)}/cni"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
    SystemdCgroup = false
"""


def _cni(pods: str) -> str:
    # Routed, not bridged: it needs neither br_netfilter nor hairpin mode.
    ipam = {
        "type": "host-local",
        "ranges": [[{"subnet": pods}]],
        "routes": [{"dst": "0.0.0.0/0"}],
        "dataDir": "/run/cni",
    }
    return json.dumps({"cniVersion": "1.0.0", "name": "pods", "plugins": [{"type": "ptp", "ipam": ipam}]}, indent=1)
