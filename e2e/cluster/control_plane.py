"""etcd, API server, controller manager and scheduler, as processes of the host.

With nodes the API server listens on the bridge, where pods reach it; alone, on loopback. All else is on loopback.
"""

import random
import socket
from pathlib import Path

from e2e.cluster.api import Api
from e2e.cluster.errors import ClusterError
from e2e.cluster.pki import CA, FRONT_PROXY_CA, FRONT_PROXY_CLIENT, PKI
from e2e.cluster.processes import running, spawn
from e2e.cluster.state import Settings, State
from e2e.cluster.waiting import wait_for

# Short enough for a test to see a dead node's pods evicted; upstream: 50 s, 5 s, 0.1, 300 s.
MONITOR_GRACE, MONITOR_PERIOD, EVICTION_RATE, TOLERATION_SECONDS = "10s", "1s", 100, 5
PROCESSES = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
PORT_NAMES = ("etcd", "peer", "manager", "scheduler", "api")
# Below the kernel's range for outgoing connections, so that none takes a port between the choice and its use.
PORT_RANGE = range(20000, 30000)
LONE_NET = "10.200"


def choose_ports() -> dict[str, int]:
    """A free loopback port for each name in PORT_NAMES."""
    chosen: list[int] = []
    for port in random.sample(PORT_RANGE, 500):
        if len(chosen) == len(PORT_NAMES):
            break
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)):  # refused: nobody listens
                chosen.append(port)
    return dict(zip(PORT_NAMES, chosen, strict=True))


def address(settings: Settings) -> str:
    """Where the API server listens."""
    return f"{settings.net}.0.1" if settings.nodes else "127.0.0.1"


def make_credentials(state: State, settings: Settings) -> None:
    """Every certificate and kubeconfig of the control plane, and the admin's."""
    pki = PKI(state)
    pki.make_authorities()
    names = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local")
    hosts = (address(settings), "127.0.0.1", f"{settings.net}.192.1", "localhost", *names)
    pki.issue("apiserver", "kube-apiserver", addresses=tuple(dict.fromkeys(hosts)))
    pki.issue("admin", "admin", "system:masters")
    pki.issue("apiserver-kubelet-client", "apiserver-kubelet-client", "system:masters")
    pki.issue(FRONT_PROXY_CLIENT, FRONT_PROXY_CLIENT, ca=FRONT_PROXY_CA)
    for name in ("kube-controller-manager", "kube-scheduler", "kube-proxy"):
        pki.issue(name, f"system:{name}")
        pki.kubeconfig(state.conf / f"{name}.kubeconfig", settings.server, name)
    pki.kubeconfig(state.kubeconfig, settings.server, "admin")


def start(state: State, settings: Settings, kubelite: Path, tied_to_caller: bool = False) -> None:
    """Start those of the four processes that do not run, and wait until namespaces take pods."""
    commands = {
        "etcd": _etcd(state, settings),
        "kube-apiserver": _apiserver(state, settings),
        "kube-controller-manager": _controller_manager(state, settings),
        "kube-scheduler": _scheduler(state, settings),
    }
    alive = running(state)
    for name, flags in commands.items():
        if name not in alive:
            spawn(state, name, [kubelite, name, *flags], tied_to_caller)
    api = Api(state, settings.server)
    wait_for("kube-apiserver", lambda: _answers(state, api, "/readyz"), hint=f"see {state.logs}")
    # Pods are refused until the controller manager has made this account.
    account = "/api/v1/namespaces/default/serviceaccounts/default"
    wait_for("default service account", lambda: _answers(state, api, account), hint=f"see {state.logs}")


def _answers(state: State, api: Api, path: str) -> bool:
    gone = [name for name in PROCESSES if name not in running(state)]
    if gone:
        raise ClusterError(f"{', '.join(gone)} ended; see {state.logs}/{gone[0]}.log")
    return api.answers(path)


def _etcd(state: State, settings: Settings) -> list[str]:
    client, peer = (f"http://127.0.0.1:{settings.ports[p]}" for p in ("etcd", "peer"))
    return [
        f"--data-dir={state.dir}/etcd", "--unsafe-no-fsync", "--log-level=warn",
        "--heartbeat-interval=50", "--election-timeout=500",
        f"--listen-client-urls={client}", f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}", f"--initial-cluster=default={peer}",
    ]  # fmt: skip


def _apiserver(state: State, settings: Settings) -> list[str]:
    pki, host = PKI(state), address(settings)
    return [
        f"--etcd-servers=http://127.0.0.1:{settings.ports['etcd']}",
        f"--bind-address={host}", f"--advertise-address={host}", f"--secure-port={settings.ports['api']}",
        f"--endpoint-reconciler-type={'lease' if settings.nodes else 'none'}",
        f"--service-cluster-ip-range={settings.net}.192.0/18",
        # No kube-proxy runs on the host, so webhooks and aggregated APIs are reached at pod addresses.
        "--enable-aggregator-routing",
        "--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
        f"--client-ca-file={pki.cert(CA)}",
        f"--tls-cert-file={pki.cert('apiserver')}", f"--tls-private-key-file={pki.key('apiserver')}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-signing-key-file={pki.key('sa')}", f"--service-account-key-file={pki.key('sa')}",
        f"--kubelet-certificate-authority={pki.cert(CA)}",
        f"--kubelet-client-certificate={pki.cert('apiserver-kubelet-client')}",
        f"--kubelet-client-key={pki.key('apiserver-kubelet-client')}",
        "--kubelet-preferred-address-types=InternalIP",
        f"--default-not-ready-toleration-seconds={TOLERATION_SECONDS}",
        f"--default-unreachable-toleration-seconds={TOLERATION_SECONDS}",
        *_front_proxy(pki),
    ]  # fmt: skip


def _front_proxy(pki: PKI) -> list[str]:
    """With these an aggregated API can trust the user names that the API server passes on."""
    return [
        f"--requestheader-client-ca-file={pki.cert(FRONT_PROXY_CA)}",
        f"--requestheader-allowed-names={FRONT_PROXY_CLIENT}",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={pki.cert(FRONT_PROXY_CLIENT)}",
        f"--proxy-client-key-file={pki.key(FRONT_PROXY_CLIENT)}",
    ]


def _controller_manager(state: State, settings: Settings) -> list[str]:
    pki = PKI(state)
    return [
        f"--kubeconfig={state.conf}/kube-controller-manager.kubeconfig",
        "--bind-address=127.0.0.1", f"--secure-port={settings.ports['manager']}", "--leader-elect=false",
        "--use-service-account-credentials", "--controllers=*",
        # With the default rate it takes five seconds longer to start.
        "--kube-api-qps=200", "--kube-api-burst=400",
        f"--service-account-private-key-file={pki.key('sa')}", f"--root-ca-file={pki.cert(CA)}",
        f"--cluster-signing-cert-file={pki.cert(CA)}", f"--cluster-signing-key-file={pki.key(CA)}",
        f"--node-monitor-grace-period={MONITOR_GRACE}", f"--node-monitor-period={MONITOR_PERIOD}",
        f"--node-eviction-rate={EVICTION_RATE}",
    ]  # fmt: skip


def _scheduler(state: State, settings: Settings) -> list[str]:
    return [
        f"--kubeconfig={state.conf}/kube-scheduler.kubeconfig",
        "--bind-address=127.0.0.1", f"--secure-port={settings.ports['scheduler']}", "--leader-elect=false",
    ]  # fmt: skip
