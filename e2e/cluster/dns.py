"""CoreDNS for the cluster's names, as a process of the host on the bridge's address."""

from e2e.cluster.build import COREDNS
from e2e.cluster.processes import spawn
from e2e.cluster.state import Settings, State, write

NAME = "coredns"


def start(state: State, settings: Settings) -> None:
    """Serve cluster.local; names of the outside world are refused, as pods reach no further anyway."""
    corefile = f""".:53 {{
    bind {settings.net}.0.1
    errors
    kubernetes cluster.local in-addr.arpa ip6.arpa {{
        kubeconfig {state.kubeconfig}
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
    }}
    cache 5
}}
"""
    spawn(state, NAME, [COREDNS.path, "-conf", write(state.conf / "Corefile", corefile)])
